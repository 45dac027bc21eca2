// What wrappers of plugins of either line share: the object, whose it is, and how it is called.
#pragma once
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "host_foreign.h"

// A plugin of a library. One that is `owned` is destroyed with the wrapper; what `keeper` holds
// stays until then.
template <typename Calls>
class ForeignPlugin {
public:
    ForeignPlugin(void *self, const Calls &calls, std::shared_ptr<Image> image, bool owned,
                  std::shared_ptr<void> keeper = nullptr)
        : calls_(calls), image_(std::move(image)), keeper_(std::move(keeper)), self_(self),
          owned_(owned) {}
    ~ForeignPlugin() {
        if (!owned_ || !self_) return;
        try {
            destroy();
        } catch (...) {  // nobody is there to be told
        }
    }
    ForeignPlugin(const ForeignPlugin &) = delete;
    ForeignPlugin &operator=(const ForeignPlugin &) = delete;

    void *self() const {
        if (!self_) throw std::invalid_argument("the plugin was destroyed already");
        return self_;
    }
    const Calls &calls() const { return calls_; }
    const std::string &library() const { return image_->path(); }
    uintptr_t image() const { return image_->base(); }

    void destroy() {
        void *object = self();
        self_ = nullptr;
        run_foreign([&] { calls_.destroy(object); });
    }

protected:
    const Calls calls_;
    const std::shared_ptr<Image> image_;
    const std::shared_ptr<void> keeper_;  // here, not in a subclass: it outlives the object

private:
    void *self_;
    const bool owned_;
};

// Calls `call(self, arguments…)` without the GIL.
template <typename Calls, typename R, typename... Parameters, typename... Arguments>
R ask(const ForeignPlugin<Calls> &plugin, R (*call)(void *, Parameters...),
      Arguments... arguments) {
    void *self = plugin.self();
    if (!call) throw std::invalid_argument("plugins of this generation have no such method");
    return run_foreign([&] { return call(self, arguments...); });
}

template <typename T>
int32_t size(const std::vector<T> &items) {
    return static_cast<int32_t>(items.size());
}
