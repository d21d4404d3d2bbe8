/* The floor: the least that `feed(text) -> (emit, match)` can cost on CPython, one step of the work after another.
 *
 * Nothing here is meant for use: it takes ASCII stops only, checks little, and goes on after a match. It does the whole job
 * on every text, though, so that its time is a bound for any extension: a method that takes one argument (METH_O), a walk with
 * one load per character, the text that may go out, a tuple.
 *
 * Built on the fly by benches/floor/__init__.py, with the C compiler that is there.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

#define ROW 128
#define MAX_STATES (1u << 17)

/* The automaton, shared by its streams. States are numbered by the start of their row, so that a step is one load. */
typedef struct {
    PyObject_HEAD
    PyObject *stops; /* a tuple of ASCII str */
    uint32_t *next;  /* [states][ROW] */
    uint32_t *depth; /* characters of the stop prefix that a state stands for: what is held in it */
    uint32_t *owner; /* a stop that begins with this prefix: where held text is read back from */
    uint32_t *found; /* 1 + the longest stop that ends here, or 0 */
} Tables;

typedef struct {
    PyObject_HEAD
    Tables *tables;
    uint32_t state;
} Floor;

static PyTypeObject TablesType;

/* --- the automaton ------------------------------------------------------------------------------------------------- */

static int grow(Tables *t, const char *stop, Py_ssize_t length, uint32_t index, uint32_t *states) {
    uint32_t at = 0;
    for (Py_ssize_t i = 0; i < length; i++) {
        uint32_t *slot = &t->next[at * ROW + (unsigned char)stop[i]];
        if (!*slot) {
            t->depth[*states] = (uint32_t)i + 1;
            t->owner[*states] = index;
            *slot = (*states)++;
        }
        at = *slot;
    }
    if (!t->found[at]) t->found[at] = index + 1;
    return 0;
}

/* Breadth first: a missing edge is the edge of the longest suffix, which is complete by then. */
static int complete(Tables *t, uint32_t states) {
    uint32_t *suffix = PyMem_Calloc(states, sizeof *suffix), *queue = PyMem_Calloc(states, sizeof *queue);
    uint32_t head = 0, tail = 0;
    if (!suffix || !queue) {
        PyMem_Free(suffix);
        PyMem_Free(queue);
        PyErr_NoMemory();
        return -1;
    }
    queue[tail++] = 0;
    while (head < tail) {
        uint32_t at = queue[head++];
        for (int c = 0; c < ROW; c++) {
            uint32_t *slot = &t->next[at * ROW + c];
            uint32_t beside = at ? t->next[suffix[at] * ROW + c] : 0;
            if (*slot) {
                suffix[*slot] = beside;
                if (!t->found[*slot]) t->found[*slot] = t->found[beside];
                queue[tail++] = *slot;
            } else {
                *slot = beside;
            }
        }
    }
    for (size_t i = 0; i < (size_t)states * ROW; i++) t->next[i] *= ROW;
    PyMem_Free(suffix);
    PyMem_Free(queue);
    return 0;
}

static PyObject *tables_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *given;
    if (!PyArg_ParseTuple(args, "O", &given)) return NULL;
    Tables *t = (Tables *)type->tp_alloc(type, 0);
    if (!t) return NULL;
    size_t limit = 1;
    if (!(t->stops = PySequence_Tuple(given))) goto failed;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(t->stops); i++) {
        PyObject *stop = PyTuple_GET_ITEM(t->stops, i);
        if (!PyUnicode_Check(stop) || !PyUnicode_IS_ASCII(stop) || !PyUnicode_GET_LENGTH(stop)) {
            PyErr_SetString(PyExc_ValueError, "the floor takes ASCII stops, none of them empty");
            goto failed;
        }
        limit += PyUnicode_GET_LENGTH(stop);
    }
    if (limit > MAX_STATES) {
        PyErr_SetString(PyExc_ValueError, "too many characters of stops for the floor");
        goto failed;
    }
    t->next = PyMem_Calloc(limit * ROW, sizeof *t->next);
    t->depth = PyMem_Calloc(limit, sizeof *t->depth);
    t->owner = PyMem_Calloc(limit, sizeof *t->owner);
    t->found = PyMem_Calloc(limit, sizeof *t->found);
    if (!t->next || !t->depth || !t->owner || !t->found) {
        PyErr_NoMemory();
        goto failed;
    }
    uint32_t states = 1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(t->stops); i++) {
        PyObject *stop = PyTuple_GET_ITEM(t->stops, i);
        grow(t, PyUnicode_DATA(stop), PyUnicode_GET_LENGTH(stop), (uint32_t)i, &states);
    }
    if (complete(t, states) < 0) goto failed;
    return (PyObject *)t;
failed:
    Py_DECREF(t);
    return NULL;
}

static void tables_dealloc(PyObject *self) {
    Tables *t = (Tables *)self;
    Py_XDECREF(t->stops);
    PyMem_Free(t->next);
    PyMem_Free(t->depth);
    PyMem_Free(t->owner);
    PyMem_Free(t->found);
    Py_TYPE(self)->tp_free(self);
}

/* --- one stream: the steps ----------------------------------------------------------------------------------------- */

static inline PyObject *pair(PyObject *emit, PyObject *match) { /* takes over emit */
    if (!emit) return NULL;
    PyObject *result = PyTuple_New(2);
    if (!result) {
        Py_DECREF(emit);
        return NULL;
    }
    PyTuple_SET_ITEM(result, 0, emit);
    Py_INCREF(match);
    PyTuple_SET_ITEM(result, 1, match);
    return result;
}

static PyObject *step_nothing(PyObject *self, PyObject *text) { Py_RETURN_NONE; }

static PyObject *step_same(PyObject *self, PyObject *text) {
    Py_INCREF(text);
    return text;
}

static PyObject *step_pair(PyObject *self, PyObject *text) {
    Py_INCREF(text);
    return pair(text, Py_None);
}

static inline void walk(Floor *f, PyObject *text) {
    const unsigned char *at = PyUnicode_DATA(text), *end = at + PyUnicode_GET_LENGTH(text);
    const uint32_t *next = f->tables->next;
    uint32_t state = f->state;
    while (at < end) state = next[state + (*at++ & (ROW - 1))];
    f->state = state;
}

static PyObject *step_walk(PyObject *self, PyObject *text) {
    walk((Floor *)self, text);
    return step_pair(self, text);
}

static PyObject *step_walk_detached(PyObject *self, PyObject *text) {
    Py_BEGIN_ALLOW_THREADS
    walk((Floor *)self, text);
    Py_END_ALLOW_THREADS
    return step_pair(self, text);
}

/* As fast as any look at a text can be: memchr for a byte that is not there. */
static inline int scan(PyObject *text) {
    return memchr(PyUnicode_DATA(text), 0, PyUnicode_GET_LENGTH(text) * PyUnicode_KIND(text)) != NULL;
}

static PyObject *step_scan(PyObject *self, PyObject *text) {
    return pair(Py_NewRef(text), scan(text) ? Py_True : Py_None);
}

static PyObject *step_scan_detached(PyObject *self, PyObject *text) {
    int hit;
    Py_BEGIN_ALLOW_THREADS
    hit = scan(text);
    Py_END_ALLOW_THREADS
    return pair(Py_NewRef(text), hit ? Py_True : Py_None);
}

/* --- one stream: the whole job ------------------------------------------------------------------------------------- */

/* `from_held` characters of the stop that owns the state, then `from_text` characters of the text. */
static PyObject *joined(PyObject *stop, Py_ssize_t from_held, PyObject *text, Py_ssize_t from_text) {
    Py_UCS4 widest = 127; /* exact, or equal texts would compare unequal */
    int ascii = PyUnicode_IS_ASCII(text);
    for (Py_ssize_t i = 0; !ascii && i < from_text; i++) {
        Py_UCS4 c = PyUnicode_READ_CHAR(text, i);
        if (c > widest) widest = c;
    }
    PyObject *emit = PyUnicode_New(from_held + from_text, widest);
    if (!emit || from_held + from_text == 0) return emit;
    if (widest == 127 && PyUnicode_KIND(text) == PyUnicode_1BYTE_KIND) {
        char *to = PyUnicode_DATA(emit);
        memcpy(to, PyUnicode_DATA(stop), from_held);
        memcpy(to + from_held, PyUnicode_DATA(text), from_text);
        return emit;
    }
    if ((from_held && PyUnicode_CopyCharacters(emit, 0, stop, 0, from_held) < 0) ||
        (from_text && PyUnicode_CopyCharacters(emit, from_held, text, 0, from_text) < 0)) {
        Py_DECREF(emit);
        return NULL;
    }
    return emit;
}

/* Feeds one chunk: the text that may go out, a new reference; `*match` is borrowed. */
static inline PyObject *fed(Floor *f, PyObject *text, PyObject **match) {
    if (!PyUnicode_Check(text)) {
        PyErr_SetString(PyExc_TypeError, "the floor takes str");
        return NULL;
    }
    const Tables *t = f->tables;
    const uint32_t *next = t->next;
    const void *data = PyUnicode_DATA(text);
    const int kind = PyUnicode_KIND(text);
    const Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    const uint32_t before = f->state / ROW;
    const Py_ssize_t held = t->depth[before];
    uint32_t state = f->state;
    Py_ssize_t at = 0, keep;
    *match = Py_None;
    while (at < length) {
        Py_UCS4 c = PyUnicode_READ(kind, data, at);
        at++;
        state = c < ROW ? next[state + c] : 0;
        if (t->found[state / ROW]) {
            *match = PyTuple_GET_ITEM(t->stops, t->found[state / ROW] - 1);
            break;
        }
    }
    keep = *match == Py_None ? (Py_ssize_t)t->depth[state / ROW] : PyUnicode_GET_LENGTH(*match);
    f->state = *match == Py_None ? state : 0;
    Py_ssize_t out = held + at - keep;
    if (!held && out == length) return Py_NewRef(text);
    Py_ssize_t from_held = out < held ? out : held;
    return joined(PyTuple_GET_ITEM(t->stops, t->owner[before]), from_held, text, out - from_held);
}

static PyObject *floor_feed(PyObject *self, PyObject *text) {
    PyObject *match;
    PyObject *emit = fed((Floor *)self, text, &match);
    return pair(emit, match);
}

static PyObject *floor_flush(PyObject *self, PyObject *unused) {
    Floor *f = (Floor *)self;
    const Tables *t = f->tables;
    uint32_t state = f->state / ROW;
    f->state = 0;
    if (!t->depth[state]) return PyUnicode_New(0, 0);
    return PyUnicode_Substring(PyTuple_GET_ITEM(t->stops, t->owner[state]), 0, t->depth[state]);
}

/* batch(streams, chunks) -> (emits, ended): one step of many streams, both given as lists. */
static PyObject *floor_batch(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    if (count != 2 || !PyList_Check(args[0]) || !PyList_Check(args[1]) || PyList_GET_SIZE(args[0]) != PyList_GET_SIZE(args[1])) {
        PyErr_SetString(PyExc_TypeError, "batch takes two lists of one length");
        return NULL;
    }
    Py_ssize_t length = PyList_GET_SIZE(args[0]);
    PyObject *emits = PyList_New(length), *ended = PyList_New(0);
    for (Py_ssize_t i = 0; emits && ended && i < length; i++) {
        PyObject *match, *emit = fed((Floor *)PyList_GET_ITEM(args[0], i), PyList_GET_ITEM(args[1], i), &match);
        if (!emit) goto failed;
        PyList_SET_ITEM(emits, i, emit);
        if (match != Py_None) {
            PyObject *entry = Py_BuildValue("nO", i, match);
            if (!entry || PyList_Append(ended, entry) < 0) {
                Py_XDECREF(entry);
                goto failed;
            }
            Py_DECREF(entry);
        }
    }
    if (!emits || !ended) goto failed;
    return Py_BuildValue("NN", emits, ended);
failed:
    Py_XDECREF(emits);
    Py_XDECREF(ended);
    return NULL;
}

static PyObject *floor_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *tables;
    if (!PyArg_ParseTuple(args, "O!", &TablesType, &tables)) return NULL;
    Floor *f = (Floor *)type->tp_alloc(type, 0);
    if (f) f->tables = (Tables *)Py_NewRef(tables);
    return (PyObject *)f;
}

static void floor_dealloc(PyObject *self) {
    Py_XDECREF(((Floor *)self)->tables);
    Py_TYPE(self)->tp_free(self);
}

static PyMethodDef floor_methods[] = {
    {"nothing", step_nothing, METH_O, "the call alone"},
    {"same", step_same, METH_O, "the same str back"},
    {"pair", step_pair, METH_O, "a new tuple of it and None"},
    {"walk", step_walk, METH_O, "and a walk over its characters"},
    {"walk_detached", step_walk_detached, METH_O, "and the walk without the GIL"},
    {"scan", step_scan, METH_O, "memchr instead of the walk"},
    {"scan_detached", step_scan_detached, METH_O, "memchr without the GIL"},
    {"feed", floor_feed, METH_O, "the whole job"},
    {"flush", floor_flush, METH_NOARGS, "what is held"},
    {0},
};

static PyTypeObject TablesType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "floor.Tables",
    .tp_basicsize = sizeof(Tables),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = tables_new,
    .tp_dealloc = tables_dealloc,
};

static PyTypeObject FloorType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "floor.Floor",
    .tp_basicsize = sizeof(Floor),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = floor_new,
    .tp_dealloc = floor_dealloc,
    .tp_methods = floor_methods,
};

static PyMethodDef functions[] = {
    {"batch", (PyCFunction)(void (*)(void))floor_batch, METH_FASTCALL, "one step of many streams"},
    {0},
};

static PyModuleDef module = {PyModuleDef_HEAD_INIT, "floor", NULL, -1, functions};

PyMODINIT_FUNC PyInit_floor(void) {
    PyObject *made = PyModule_Create(&module);
    if (!made || PyType_Ready(&TablesType) < 0 || PyType_Ready(&FloorType) < 0) return NULL;
    if (PyModule_AddObjectRef(made, "Tables", (PyObject *)&TablesType) < 0 ||
        PyModule_AddObjectRef(made, "Floor", (PyObject *)&FloorType) < 0)
        return NULL;
    return made;
}
