//! The keys each dialect has itself in the object that says how an answer ended: a `stop_field`
//! cannot be one of them, or the object would have that key twice and readers would see whichever
//! stands last.
#![forbid(unsafe_code)]

use super::super::Dialect;

/// The dialect's own keys beside its finish field. `stop_reason` and `matched_stop` of vLLM and
/// `SGLang` are not among them: those name a stop, and one that is there already is written in
/// place.
pub(in crate::wire) fn own(dialect: Dialect) -> impl Iterator<Item = &'static str> {
    let keys = match dialect {
        Dialect::OpenAiChat => "index delta message finish_reason logprobs",
        Dialect::OpenAiCompletions => "index text finish_reason logprobs",
        Dialect::OpenAiResponses => {
            "id object created_at status background completed_at error incomplete_details instructions \
             max_output_tokens max_tool_calls metadata model output output_text parallel_tool_calls \
             previous_response_id prompt reasoning service_tier store temperature text tool_choice tools top_logprobs \
             top_p truncation usage user"
        }
        Dialect::AnthropicMessages => {
            "id type role model content container stop_reason stop_sequence usage"
        }
        Dialect::Gemini => {
            "content finishReason finishMessage index tokenCount safetyRatings citationMetadata avgLogprobs \
             logprobsResult groundingAttributions groundingMetadata urlContextMetadata"
        }
        Dialect::OllamaChat | Dialect::OllamaGenerate => {
            "model created_at message response thinking done done_reason context logprobs error total_duration \
             load_duration prompt_eval_count prompt_eval_duration eval_count eval_duration"
        }
        Dialect::LlamaCpp => {
            "index id_slot content tokens stop stop_type stopping_word stopped_word stopped_eos stopped_limit model \
             prompt generation_settings truncated has_new_line timings tokens_predicted tokens_evaluated tokens_cached \
             completion_probabilities probs"
        }
        Dialect::Tgi => {
            "finish_reason generated_tokens seed input_length prefill tokens top_tokens best_of_sequences"
        }
    };
    keys.split_ascii_whitespace()
}
