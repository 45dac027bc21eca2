// The values of a structure of pyds in the order of its record, see headrace.gstreamer.cmeta.flat.
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::results {
namespace {

// The indexes of `_Part`'s fields.
enum {
    kPlain,
    kDefaults,
    kOwned,
    kBorrowed,
    kCharacters,
    kArrays,
    kEmpty,
    kNested,
    kBlank,
    kIsPlain
};

nb::handle item(nb::handle tuple, Py_ssize_t index) {
    PyObject *value = PyTuple_GetItem(tuple.ptr(), index);  // borrowed
    if (!value) throw nb::python_error();
    return value;
}

Py_ssize_t length(nb::handle sequence) {
    const Py_ssize_t size = PyObject_Size(sequence.ptr());
    if (size < 0) throw nb::python_error();
    return size;
}

class Gathering {
public:
    Gathering(nb::list values, nb::list texts, nb::handle held, nb::handle address,
              nb::handle letters)
        : values_(std::move(values)),
          texts_(std::move(texts)),
          held_(held),
          address_(address),
          letters_(letters),
          zero_(nb::int_(0)) {}

    // False for a structure that goes the long way.
    bool add(nb::handle part, nb::handle old) {
        add_plain(part, old);
        return add_texts(part, old) && add_arrays(part, old) && add_nested(part, old);
    }

private:
    static nb::handle get(nb::handle old, nb::handle name) {
        PyObject *value = PyDict_GetItemWithError(old.ptr(), name.ptr());  // borrowed
        if (!value && PyErr_Occurred()) throw nb::python_error();
        return value;
    }

    static bool is_there(nb::handle value) { return value.is_valid() && !value.is_none(); }

    void push(nb::handle value) {
        if (PyList_Append(values_.ptr(), value.ptr()) < 0) throw nb::python_error();
    }

    void push_all(nb::handle sequence) {
        const Py_ssize_t end = length(values_);
        if (PyList_SetSlice(values_.ptr(), end, end, sequence.ptr()) < 0) throw nb::python_error();
    }

    void add_plain(nb::handle part, nb::handle old) {
        const nb::handle names = item(part, kPlain), defaults = item(part, kDefaults);
        const Py_ssize_t count = length(names);
        for (Py_ssize_t i = 0; i < count; ++i) {
            const nb::handle value = get(old, item(names, i));
            push(value.is_valid() ? value : item(defaults, i));
        }
    }

    bool add_texts(nb::handle part, nb::handle old) {
        const nb::handle owned = item(part, kOwned), borrowed = item(part, kBorrowed),
                         characters = item(part, kCharacters);
        for (Py_ssize_t i = 0, n = length(owned); i < n; ++i) {
            const nb::handle text = get(old, item(owned, i));
            if (!is_there(text)) {
                push(zero_);
            } else if (nb::handle(reinterpret_cast<PyObject *>(Py_TYPE(text.ptr()))).is(held_)) {
                texts_.append(text);
                push(nb::object(text.attr("address")));
            } else {
                return false;
            }
        }
        for (Py_ssize_t i = 0, n = length(borrowed); i < n; ++i) {
            const nb::handle text = get(old, item(borrowed, i));
            if (is_there(text))
                push(address_(text));
            else
                push(zero_);
        }
        for (Py_ssize_t i = 0, n = length(characters); i < n; ++i) {
            const nb::handle text = get(old, item(characters, i));
            push(text.is_valid() ? letters_(text) : nb::object(nb::bytes("", 0)));
        }
        return true;
    }

    bool add_arrays(nb::handle part, nb::handle old) {
        const nb::handle arrays = item(part, kArrays), empty = item(part, kEmpty);
        for (Py_ssize_t i = 0, n = length(arrays); i < n; ++i) {
            const nb::handle row = item(arrays, i), array = get(old, item(row, 0));
            if (!is_there(array) || length(array) != nb::cast<Py_ssize_t>(item(row, 1)))
                return false;
            push_all(array);
        }
        for (Py_ssize_t i = 0, n = length(empty); i < n; ++i) {
            if (is_there(get(old, item(empty, i)))) return false;
            push(zero_);
        }
        return true;
    }

    bool add_nested(nb::handle part, nb::handle old) {
        const nb::handle rows = item(part, kNested);
        for (Py_ssize_t i = 0, n = length(rows); i < n; ++i) {
            const nb::handle row = item(rows, i), inner = item(row, 2);
            const nb::handle nested = get(old, item(row, 0));
            if (!is_there(nested)) {
                if (item(inner, kBlank).is_none()) return false;
                push_all(item(inner, kBlank));
            } else if (!nb::handle(reinterpret_cast<PyObject *>(Py_TYPE(nested.ptr())))
                            .is(item(row, 1)) ||
                       Py_REFCNT(nested.ptr()) > 1) {  // an application keeps it
                return false;
            } else {
                const nb::object fields = nested.attr("__dict__");
                if (item(inner, kIsPlain).ptr() == Py_True)
                    add_plain(inner, fields);
                else if (!add(inner, fields))
                    return false;
            }
        }
        return true;
    }

    nb::list values_, texts_;
    nb::handle held_, address_, letters_;
    nb::object zero_;
};

}  // namespace

void bind_gather(nb::module_ &m) {
    m.def(
        "gather",
        [](nb::tuple part, nb::dict old, nb::list values, nb::list texts, nb::handle held,
           nb::handle address, nb::handle letters) {
            return Gathering(std::move(values), std::move(texts), held, address, letters)
                .add(part, old);
        },
        "part"_a, "old"_a, "values"_a, "texts"_a, "held"_a, "address"_a, "letters"_a,
        nb::sig(
            "def gather(part: tuple, old: dict, values: list, texts: list, held: type, address: "
            "Callable, letters: Callable) -> bool"),
        "Append the values of a structure's fields, and its texts of the type `held`; False for a "
        "structure that no record holds.");
}

}  // namespace headrace::results
