#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holdback_fuzz::targets::lenient(data));
