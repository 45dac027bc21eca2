// Operators for ONNX Runtime that Python computes: OrtOperators, OrtCall.
//
// The runtime asks a shared library for operators by calling its RegisterCustomOps; this module is
// that library. What it offers is decided per thread by `OrtOperators.register_with`, because the
// call carries nothing of ours.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/unlocked.h"
#include "module.h"
#include "ort/api.h"

namespace nb = nanobind;

namespace headrace::ort {

namespace ort = headrace::ort;

namespace {

using Status = void *;

template <typename... Arguments>
Status call(const void *const *table, Function function, Arguments... arguments) {
    return reinterpret_cast<Status (*)(Arguments...)>(const_cast<void *>(table[function]))(
        arguments...);
}

void release(const void *const *table, Function function, void *object) {
    if (object != nullptr) {
        reinterpret_cast<void (*)(void *)>(const_cast<void *>(table[function]))(object);
    }
}

Status failure(const void *const *table, const char *text) {
    constexpr int kFail = 1;
    return call(table, kCreateStatus, kFail, text);
}

void check(const void *const *table, Status status) {
    if (status != nullptr) {
        release(table, kReleaseStatus, status);
        throw std::runtime_error("ONNX Runtime refused an operator of headrace");
    }
}

struct Set;

struct Computed : Operator {
    std::string text;
    std::vector<int> inputs, outputs;
    std::size_t index;
    bool passes_run_id;  // gives its first input as its first output
    Set *set;
};

// The operators of one session. Every kernel holds the set: it lives as long as the session does.
struct Set : std::enable_shared_from_this<Set> {
    nb::object compute;  // (operator's index, Call) -> whether it went well
    std::string domain_name;
    std::vector<Computed> operators;  // not changed once made: the runtime has their addresses
    const void *const *table = nullptr;
    void *domain = nullptr;

    ~Set() {
        if (domain != nullptr) {
            release(table, kReleaseDomain, domain);
        }
        if (!Py_IsInitialized()) {
            compute.release();
            return;
        }
        core::Locked gil;
        compute.reset();
    }
};

struct Kernel {
    std::shared_ptr<Set> set;
    std::size_t index;
    const void *const *table;
};

thread_local std::shared_ptr<Set> offered;

// What Python is given for one computation; only valid while it lasts.
class Call {
public:
    Call(const void *const *table, void *context, const Computed &op)
        : table_(table), context_(context), count_(op.inputs.size()) {
        const void *value = input(0);
        void *data = nullptr;
        check(table_, call(table_, kTensorData, const_cast<void *>(value), &data));
        run_id_ = *static_cast<const std::int32_t *>(data);
        if (op.passes_run_id) {
            const std::int64_t one = 1;
            *static_cast<std::int32_t *>(output_data(0, &one, 1)) = run_id_;
        }
    }
    void end() { context_ = nullptr; }
    std::int32_t run_id() const { return run_id_; }

    nb::list inputs() const {
        alive();
        nb::list found;
        for (std::size_t index = 1; index < count_; ++index) {
            const void *value = input(index);
            void *data = nullptr;
            check(table_, call(table_, kTensorData, const_cast<void *>(value), &data));
            found.append(nb::make_tuple(reinterpret_cast<std::uintptr_t>(data), shape_of(value)));
        }
        return found;
    }

    std::uintptr_t output(std::size_t index, const std::vector<std::int64_t> &axes) const {
        return reinterpret_cast<std::uintptr_t>(output_data(index, axes.data(), axes.size()));
    }

private:
    const void *input(std::size_t index) const {
        const void *value = nullptr;
        check(table_, call(table_, kInputOf, alive(), index, &value));
        return value;
    }

    void *output_data(std::size_t index, const std::int64_t *axes, std::size_t count) const {
        void *value = nullptr, *data = nullptr;
        check(table_, call(table_, kOutputOf, alive(), index, axes, count, &value));
        check(table_, call(table_, kTensorData, value, &data));
        return data;
    }

    nb::tuple shape_of(const void *value) const {
        void *shape = nullptr;
        check(table_, call(table_, kShapeOf, value, &shape));
        std::size_t count = 0;
        Status status = call(table_, kAxisCount, static_cast<const void *>(shape), &count);
        std::vector<std::int64_t> axes(count);
        if (status == nullptr) {
            status = call(table_, kAxes, static_cast<const void *>(shape), axes.data(), count);
        }
        release(table_, kReleaseShape, shape);
        check(table_, status);
        nb::list found;
        for (const std::int64_t axis : axes) {
            found.append(axis);
        }
        return nb::tuple(found);
    }

    void *alive() const {
        if (context_ == nullptr) {
            throw std::runtime_error("the operator is computed already");
        }
        return context_;
    }

    const void *const *table_;
    void *context_;
    std::size_t count_;
    std::int32_t run_id_ = 0;
};

const Computed &own(const Operator *op) { return *static_cast<const Computed *>(op); }

void *create(const Operator *op, const void *api, const void *, void **kernel) {
    const Computed &made = own(op);
    *kernel =
        new Kernel{made.set->shared_from_this(), made.index, static_cast<const void *const *>(api)};
    return nullptr;
}

void *compute(void *kernel, void *context) {
    const Kernel &k = *static_cast<Kernel *>(kernel);
    core::Locked gil;
    try {
        nb::object given = nb::cast(Call(k.table, context, k.set->operators[k.index]));
        const nb::object done = k.set->compute(k.index, given);
        nb::inst_ptr<Call>(given)->end();
        return nb::cast<bool>(done) ? nullptr : failure(k.table, "an operator of headrace failed");
    } catch (nb::python_error &error) {
        return failure(k.table, error.what());
    } catch (const std::exception &error) {
        return failure(k.table, error.what());
    }
}

Computed described(std::string name, std::vector<int> inputs, std::vector<int> outputs,
                   bool passes_run_id, std::size_t index) {
    Computed made{};
    made.text = std::move(name);
    made.inputs = std::move(inputs);
    made.outputs = std::move(outputs);
    made.index = index;
    made.passes_run_id = passes_run_id;
    made.version = kVersion;
    made.name = [](const Operator *op) { return own(op).text.c_str(); };
    made.provider = [](const Operator *) -> const char * { return nullptr; };  // the CPU
    made.input_type = [](const Operator *op, std::size_t i) { return own(op).inputs.at(i); };
    made.input_count = [](const Operator *op) { return own(op).inputs.size(); };
    made.output_type = [](const Operator *op, std::size_t i) { return own(op).outputs.at(i); };
    made.output_count = [](const Operator *op) { return own(op).outputs.size(); };
    made.destroy = [](void *kernel) { delete static_cast<Kernel *>(kernel); };
    const auto required = [](const Operator *, std::size_t) { return 0; };
    made.input_kind = required;
    made.output_kind = required;
    made.input_memory = required;  // the default one
    const auto one = [](const Operator *) { return 1; };
    made.least_inputs = one;
    made.same_inputs = one;
    made.least_outputs = one;
    made.same_outputs = one;
    made.create_or_fail = create;
    made.compute_or_fail = compute;
    return made;
}

using Description = std::tuple<std::string, std::vector<int>, std::vector<int>, bool>;

// Python's handle of a set, until a session has it.
class Operators {
public:
    Operators(nb::object compute, std::string domain, const std::vector<Description> &operators)
        : set_(std::make_shared<Set>()) {
        set_->compute = std::move(compute);
        set_->domain_name = std::move(domain);
        for (const auto &[name, inputs, outputs, passes_run_id] : operators) {
            set_->operators.push_back(
                described(name, inputs, outputs, passes_run_id, set_->operators.size()));
            set_->operators.back().set = set_.get();
        }
    }

    void register_with(const nb::callable &ask) const {
        offered = set_;
        try {
            ask();
        } catch (...) {
            offered.reset();
            throw;
        }
        offered.reset();
    }

private:
    std::shared_ptr<Set> set_;
};

}  // namespace

// Called by ONNX Runtime, which found this module by its path.
extern "C" __attribute__((visibility("default"))) void *RegisterCustomOps(void *options,
                                                                          const ApiBase *base) {
    const void *const *table = base->table(kVersion);
    if (table == nullptr) {  // a runtime before 1.16 has no way to tell of a failure that we know
        return nullptr;      // it will refuse the model, for want of the operators
    }
    const std::shared_ptr<Set> set = offered;
    if (set == nullptr || set->domain != nullptr) {
        return failure(table, "headrace offers no operators now");
    }
    Status status = call(table, kCreateDomain, set->domain_name.c_str(), &set->domain);
    set->table = table;
    for (Computed &made : set->operators) {
        if (status == nullptr) {
            status = call(table, kAddToDomain, set->domain, static_cast<const Operator *>(&made));
        }
    }
    return status != nullptr ? status : call(table, kAddDomain, options, set->domain);
}

void bind(nb::module_ &m) {
    nb::class_<Call>(m, "OrtCall", "One computation of an operator; only valid while it lasts.")
        .def_prop_ro("run_id", &Call::run_id,
                     "The operator's first input: the id of the run it belongs to.")
        .def("inputs", &Call::inputs,
             nb::sig("def inputs(self) -> list[tuple[int, tuple[int, ...]]]"),
             "Address and shape of each further input.")
        .def("output", &Call::output, nb::arg("index"), nb::arg("shape"),
             "Address of an output that gets this shape.");
    nb::class_<Operators>(m, "OrtOperators",
                          "Operators of one session of ONNX Runtime that Python computes.")
        .def(nb::init<nb::object, std::string, const std::vector<Description> &>(),
             nb::arg("compute"), nb::arg("domain"), nb::arg("operators"),
             "compute(index, OrtCall) says whether it went well. An operator is (name, ONNX types "
             "of its "
             "inputs, of its outputs, whether its first input, an int32, is its first output too).")
        .def("register_with", &Operators::register_with, nb::arg("ask"),
             "Offer them while `ask` makes session options load this module as a library of "
             "operators.");
}

}  // namespace headrace::ort
