// A program for libraries of another processor, which an emulator runs: it loads one and answers
// calls. usage: host-aarch64 REQUESTS ANSWERS TENSORS REPORT HANG-SIGNAL, all but the last of them
// numbers of open files. It ends when nobody asks any more.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>

#include <csetjmp>
#include <cstdio>
#include <memory>
#include <unordered_set>

#include "custom/results.h"
#include "custom/watched.h"
#include "emulated/asking.h"
#include "emulated/creators.h"
#include "emulated/memory.h"
#include "emulated/messages.h"
#include "emulated/networks.h"
#include "emulated/plugins.h"
#include "stand_ins/stand_in.h"

namespace headrace::emulated {
namespace {

using custom::ByteVector;

struct Function {
    void *address;
    std::string name;
    std::vector<NvDsInferLayerInfo> layers;
    std::vector<std::string> names;
    bool inputs = false;
    NvDsInferParseDetectionParams params{};
};

struct Answer {
    Status status = kDone;
    uint32_t value = 0;
    Body body;
};

class Host {
public:
    Host(int tensors, Send send) : tensors_(tensors), plugins_(tensors_), send_(std::move(send)) {}

    Answer answer(Operation operation, Reader &from) {
        switch (operation) {
        case kLoad: return load(from);
        case kFunction: return function(from);
        case kLayers: return layers(from);
        case kParams: return params(from);
        case kCall: return call(from);
        case kCreators: return creators();
        case kPlugin: return plugin(from);
        case kNetwork: return network(from);
        case kCallBack: {
            Answer answer;
            Body told;
            // of the function that the host asks it for, where one runs
            const char *const running = Named::now_;
            if (watched(answer, *running ? running : "an object of the library", [&] {
                    call_back(plugins_, from, told);
                    return true;
                }))
                answer.body = std::move(told);
            return answer;
        }
        case kMemory: {
            const auto address = from.take<uint64_t>(), size = from.take<uint64_t>();
            Answer answer;
            answer.body.bytes(reinterpret_cast<const void *>(address), size);
            return answer;
        }
        case kReply: break;
        }
        throw std::runtime_error("an unknown request");
    }

private:
    Answer load(Reader &from) {
        Answer answer;
        const auto path = from.text();
        serve_creators();
        for (auto count = from.take<uint32_t>(); count; --count)
            if (!stand_in(from)) return failed();
        guard::set_function(path.c_str());
        library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        guard::set_function("");
        if (!library_) return failed();
        const auto notes = stand_ins::take_notes();
        answer.body.add(static_cast<uint32_t>(notes.size()));
        for (const auto &[called, owner] : notes) answer.body.text(called).text(owner);
        return answer;
    }

    static Answer creators() {
        Answer answer;
        Body told;
        if (guarded(answer, "getFieldNames", [&] {
                tell_creators(told);
                return true;
            }))
            answer.body = std::move(told);
        return answer;
    }

    static Answer failed() {
        Answer answer;
        answer.status = kFailed;
        const char *why = dlerror();
        answer.body.text(std::string(why ? why : "dlopen failed without a reason"));
        return answer;
    }

    // Loads one, and makes offsets in it addresses: see headrace.custom.emulated.library.
    static bool stand_in(Reader &from) {
        const auto path = from.text(), library = from.text();
        const auto anchor_at = from.take<uint64_t>(), records_at = from.take<uint64_t>(),
                   record_count = from.take<uint64_t>();
        void *image = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
        char *anchor = image ? static_cast<char *>(dlsym(image, "headrace_stand_in")) : nullptr;
        char *base = anchor - anchor_at;
        auto records = reinterpret_cast<stand_ins::Record *>(base + records_at);
        for (uint64_t i = 0; anchor && i < record_count; ++i) {
            if (!records[i].function) continue;  // not of a function
            records[i].function = base + reinterpret_cast<uintptr_t>(records[i].function);
            records[i].library = base + reinterpret_cast<uintptr_t>(records[i].library);
            records[i].target = reinterpret_cast<void *>(
                stand_ins::target_of(records[i].function, records[i].library));
        }
        for (auto count = from.take<uint32_t>(); count; --count) {
            const auto at = from.take<uint64_t>();
            if (anchor)
                *reinterpret_cast<uint64_t *>(base + at) += reinterpret_cast<uintptr_t>(base);
        }
        struct Plain {};
        for (auto count = from.take<uint32_t>(); count; --count) {
            const auto at = from.take<uint64_t>();
            if (anchor) std::memcpy(base + at, &typeid(Plain), sizeof(void *));
        }
        return anchor;
    }

    Answer function(Reader &from) {
        Answer answer;
        const auto name = from.text();
        void *address = dlsym(library_, name.c_str());
        if (!address) return failed();
        answer.value = static_cast<uint32_t>(functions_.size());
        functions_.push_back(std::make_unique<Function>());
        functions_.back()->address = address;
        functions_.back()->name = name;
        return answer;
    }

    Function &chosen(Reader &from) { return *functions_.at(from.take<uint32_t>()); }

    Answer layers(Reader &from) {
        Function &function = chosen(from);
        function.inputs = from.take<uint32_t>();
        const auto count = from.take<uint32_t>();
        function.layers.assign(count, NvDsInferLayerInfo{});
        function.names.assign(count, "");
        for (uint32_t i = 0; i < count; ++i) {
            function.names[i] = from.text();
            // libraries may keep a layer's name pointer
            function.layers[i].layerName = names_.insert(function.names[i]).first->c_str();
            function.layers[i].bindingIndex = from.take<int32_t>();
            function.layers[i].isInput = function.inputs;
        }
        return {};
    }

    Answer params(Reader &from) {
        Function &function = chosen(from);
        function.params.numClassesConfigured = from.take<uint32_t>();
        std::vector<float> pre, post;
        for (std::vector<float> *values : {&pre, &post}) {
            values->resize(from.take<uint32_t>());
            for (float &value : *values) value = from.take<float>();
        }
        custom::fill_with_guard(function.params.perClassPreclusterThreshold, pre);
        custom::fill_with_guard(function.params.perClassPostclusterThreshold, post);
        return {};
    }

    Answer call(Reader &from) {
        Function &function = chosen(from);
        const auto kind = from.take<Kind>();
        NvDsInferNetworkInfo network{};
        network.width = from.take<uint32_t>();
        network.height = from.take<uint32_t>();
        network.channels = from.take<uint32_t>();
        const auto size = from.take<uint64_t>();
        std::vector<Place> places;
        for (NvDsInferLayerInfo &layer : function.layers) {
            layer.dataType = from.take<NvDsInferDataType>();
            layer.inferDims = {};
            layer.inferDims.numDims = from.take<uint32_t>();
            if (layer.inferDims.numDims > NVDSINFER_MAX_DIMS)
                throw std::runtime_error("too many axes");
            layer.inferDims.numElements = 1;
            for (unsigned int i = 0; i < layer.inferDims.numDims; ++i)
                layer.inferDims.numElements *= layer.inferDims.d[i] = from.take<uint32_t>();
            const auto offset = from.take<uint64_t>(), bytes = from.take<uint64_t>();
            places.push_back({offset, bytes});
        }
        tensors_.map(size, places, function.names,
                     function.inputs ? "input layer " : "output layer ");
        for (size_t i = 0; i < places.size(); ++i)
            function.layers[i].buffer = tensors_.at(places[i].offset);
        switch (kind) {
        case kBoxes: return boxes(function, network, from);
        case kInstances: return instances(function, network, from);
        case kAttributes: return attributes(function, network, from);
        case kMap: return map(function, network, from);
        case kInputs: {
            Answer answer;
            const auto batch = from.take<uint32_t>();
            run(answer, function, decltype(&NvDsInferInitializeInputLayers){}, function.layers,
                network, batch);
            return answer;
        }
        }
        throw std::runtime_error("an unknown kind of function");
    }

    // Whether the function left a result. Everything that it throws goes into the answer.
    template <typename... Parameters, typename... Arguments>
    static bool run(Answer &answer, Function &function, bool (*)(Parameters...),
                    Arguments &&...arguments) {
        return guarded(answer, function.name.c_str(), [&] {
            answer.value =
                reinterpret_cast<bool (*)(Parameters...)>(function.address)(arguments...);
            return answer.value != 0;
        });
    }

    // The result of `body`, which calls into the library; false, and the reason in the answer,
    // where that throws or calls a function that is not there.
    template <typename Body>
    static bool guarded(Answer &answer, const char *name, Body body) {
        stand_ins::Scope scope;
        const Named named(name);
        if (setjmp(scope.jump)) return threw(answer, kMissing, scope.refused.c_str());
        return caught(answer, body);
    }

    // The same with what it throws alone.
    template <typename Body>
    static bool caught(Answer &answer, Body body) {
        try {
            try {
                return body();
            } catch (const custom::CustomCodeError &) {
                throw;
            } catch (...) {
                custom::translate_current_exception();
            }
        } catch (const custom::CustomCodeError &error) {
            return threw(answer, kThrew, error.what());
        } catch (const stand_ins::MissingFunctionError &error) {
            return threw(answer, kMissing, error.what());
        }
    }

    // While it lives, reports of a crash name the function.
    struct Named {
        explicit Named(const char *name) : outer_(now_) { guard::set_function(now_ = name); }
        ~Named() { guard::set_function(now_ = outer_); }
        const char *outer_;
        inline static const char *now_ = "";
    };

    // The same, and functions that its results need and that are not there end it.
    template <typename Body>
    static bool watched(Answer &answer, const char *name, Body body) {
        const Named named(name);
        return caught(answer, [&] {
            try {
                const custom::Watched watch;
                const bool done = body();
                watch.require_done();
                return done;
            } catch (const RefusedError &error) {
                return threw(answer, kFailed, error.what());
            } catch (const std::invalid_argument &error) {
                return threw(answer, kFailed, error.what());
            }
        });
    }

    Answer plugin(Reader &from) {
        Answer answer;
        const std::string method = from.text();
        Body results;
        if (watched(answer, method.c_str(), [&] {
                plugins_.call(method, from, results);
                return true;
            }))
            answer.body = std::move(results);
        return answer;
    }

    Answer network(Reader &from) {
        Answer answer;
        const std::string method = from.text(), called = from.text();
        const Asking asking(plugins_, send_);
        Body results;
        if (watched(answer, called.c_str(), [&] {
                networks_.call(library_, method, from, results);
                return true;
            }))
            answer.body = std::move(results);
        return answer;
    }

    static bool threw(Answer &answer, Status status, const char *text) {
        answer.status = status;
        answer.body.text(std::string(text));
        return false;
    }

    using Parse = bool (*)(const std::vector<NvDsInferLayerInfo> &, const NvDsInferNetworkInfo &,
                           const NvDsInferParseDetectionParams &, ByteVector &);

    static Answer boxes(Function &function, const NvDsInferNetworkInfo &network, Reader &from) {
        Answer answer;
        const auto most = from.take<uint64_t>();
        ByteVector found;
        if (!run(answer, function, Parse{}, function.layers, network, function.params, found))
            return answer;
        answer.body.add<uint64_t>(found.size()).add<uint64_t>(found.capacity());
        if (found.size() <= most) answer.body.bytes(found.begin, found.size());
        return answer;
    }

    static Answer instances(Function &function, const NvDsInferNetworkInfo &network, Reader &from) {
        Answer answer;
        const auto most = from.take<uint64_t>(), most_bytes = from.take<uint64_t>(),
                   most_together = from.take<uint64_t>();
        custom::InstanceVector found;
        if (!run(answer, function, Parse{}, function.layers, network, function.params,
                 static_cast<ByteVector &>(found)))
            return answer;
        if (!found.are_records()) {
            answer.status = kNoResult;
            answer.body.add<uint64_t>(found.size());
            return answer;
        }
        answer.body.add<uint64_t>(found.count());
        if (found.count() > most) return answer;
        uint64_t together = 0;
        for (size_t i = 0; i < found.count(); ++i) {
            const NvDsInferInstanceMaskInfo &one = found.record(i);
            const uint64_t pixels = uint64_t{one.mask_width} * one.mask_height;
            const bool some = one.mask && (pixels || one.mask_size);
            const bool fits =
                some && one.mask_size <= most_bytes && (together += one.mask_size) <= most_together;
            answer.body.bytes(&one, 24)
                .add(one.mask_width)
                .add(one.mask_height)
                .add(one.mask_size)
                .add<uint32_t>(!some  ? 0
                               : fits ? 1
                                      : 2);
            if (fits) answer.body.bytes(one.mask, one.mask_size);
        }
        return answer;
    }

    static Answer attributes(Function &function, const NvDsInferNetworkInfo &network,
                             Reader &from) {
        Answer answer;
        const auto threshold = from.take<float>();
        const auto most = from.take<uint64_t>();
        custom::Attributes found;
        if (!run(answer, function, NvDsInferClassiferParseCustomFunc{}, function.layers, network,
                 threshold, found.list, found.text))
            return answer;
        answer.body.add<uint64_t>(found.list.size());
        if (found.list.size() > most) return answer;
        for (const NvDsInferAttribute &one : found.list) {
            answer.body.add(one.attributeIndex)
                .add(one.attributeValue)
                .add(one.attributeConfidence)
                .add<uint32_t>(one.attributeLabel != nullptr);
            if (one.attributeLabel)
                answer.body.text(one.attributeLabel, std::strlen(one.attributeLabel));
        }
        answer.body.text(found.text.c_str(), std::strlen(found.text.c_str()));
        return answer;
    }

    Answer map(Function &function, const NvDsInferNetworkInfo &network, Reader &from) {
        Answer answer;
        const auto threshold = from.take<float>();
        const auto classes = from.take<uint32_t>();
        const size_t bytes = size_t{4} * network.width * network.height;
        const Guarded memory(bytes);
        std::memset(memory.start(), 0xff, bytes);  // -1: what is left out is of no class
        const auto start = reinterpret_cast<uintptr_t>(memory.start());
        guard::set_region(kMostRegions, start, start + bytes, "the class map", -1, 0);
        int *const pixels = reinterpret_cast<int *>(memory.start());
        float *probabilities = nullptr;
        const bool done = run(answer, function, NvDsInferSemSegmentationParseCustomFunc{},
                              function.layers, network, threshold, classes, pixels, probabilities);
        guard::set_region(kMostRegions, 0, 0, "", -1, 0);
        if (!done) return answer;
        uint64_t inside = 0;
        const int tensor = probabilities ? tensors_.find(probabilities, inside) : -1;
        answer.body.add<uint32_t>(!probabilities ? 0
                                  : tensor < 0   ? 2
                                                 : 1)
            .add<uint32_t>(static_cast<uint32_t>(tensor < 0 ? 0 : tensor))
            .add<uint64_t>(inside)
            .bytes(memory.start(), bytes);
        return answer;
    }

    Tensors tensors_;
    Plugins plugins_;
    Networks networks_;
    Send send_;
    void *library_ = nullptr;
    std::vector<std::unique_ptr<Function>> functions_;
    std::unordered_set<std::string> names_;
};

constexpr int kLostLink = 71;  // as a worker ends whose descriptors were closed

struct RequestHead {
    Operation operation;
    uint32_t unused;
    uint64_t bytes;
};
struct AnswerHead {
    Status status;
    uint32_t value;
    uint64_t bytes;
};

// Answers requests, and asks in between what libraries ask of builders.
class Link {
public:
    Link(int requests, int answers, int tensors)
        : requests_(requests),
          answers_(answers),
          host_(tensors, [this](const Body &question) { return asked(question); }) {}

    int serve() {
        std::string body;
        Operation operation;
        while (receive(operation, body)) answer(operation, body);
        return fcntl(requests_, F_GETFD) < 0 || fcntl(answers_, F_GETFD) < 0 ? kLostLink : 0;
    }

private:
    std::string asked(const Body &question) {
        std::string body;
        Operation operation;
        send(kAsks, 0, question);
        while (receive(operation, body)) {
            if (operation == kReply) return body;
            answer(operation, body);
        }
        _exit(0);  // nobody asks any more
    }

    bool receive(Operation &operation, std::string &body) {
        RequestHead head;
        if (!read_all(requests_, &head, sizeof head)) return false;
        operation = head.operation;
        body.assign(head.bytes, '\0');
        return read_all(requests_, body.data(), body.size());
    }

    void answer(Operation operation, const std::string &body) {
        Reader from(body);
        Answer answer;
        try {
            answer = host_.answer(operation, from);
        } catch (const std::exception &error) {
            answer = {};
            answer.status = kFailed;
            answer.body.text(std::string(error.what()));
        }
        std::fflush(stdout);
        send(answer.status, answer.value, answer.body);
    }

    // A reader that is gone shows at the next request.
    void send(Status status, uint32_t value, const Body &body) {
        const std::string &data = body.data();
        const AnswerHead head{status, value, data.size()};
        if (write_all(answers_, &head, sizeof head)) write_all(answers_, data.data(), data.size());
    }

    int requests_, answers_;
    Host host_;
};

}  // namespace
}  // namespace headrace::emulated

int main(int count, char **arguments) {
    if (count != 6) {
        std::fprintf(stderr, "headrace starts this program\n");
        return 2;
    }
    using headrace::guard::end_by_exit;
    using headrace::guard::report_to;
    const auto number = [&](int index) { return std::atoi(arguments[index]); };
    std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
    signal(SIGINT, SIG_IGN);  // Ctrl-C is for the application
    if (number(4) >= 0) {
        report_to(number(4), number(5));
        end_by_exit();
    }
    _exit(headrace::emulated::Link(number(1), number(2), number(3)).serve());
}
