#include "guard_calls.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace {

constexpr size_t most_known = 4096;

}  // namespace

GuardCalls::GuardCalls(DetectorParser &parser, const NvDsInferNetworkInfo &network,
                       std::string function, size_t most_boxes)
    : parser_(parser), network_(network), function_(std::move(function)),
      most_boxes_(most_boxes) {}

void GuardCalls::learn(const GuardChannel &channel, std::vector<GuardRegion> regions) {
    if (known_.size() >= most_known) known_.clear();
    if (read_places(channel.words())) known_[places_] = Known{parser_.layers(), std::move(regions)};
}

bool GuardCalls::read_places(const uint64_t *words) {
    const size_t count = parser_.layer_count();
    if (count > guard_max_places) return false;
    places_.resize(3 * count);
    std::copy_n(words + guard_places_at, places_.size(), places_.begin());
    return true;
}

const GuardCalls::Known *GuardCalls::known(const uint64_t *words) {
    if (words[guard_op] != guard_call || !read_places(words)) return nullptr;
    const auto at = known_.find(places_);
    return at == known_.end() ? nullptr : &at->second;
}

bool GuardCalls::serve(GuardChannel &channel, size_t box_words, bool with_angles, char *out,
                       size_t size) {
    parser_.keep(nullptr);
    const Known *shown = nullptr;  // Python has named others since
    while (channel.next()) {
        uint64_t *words = channel.words();
        const Known *call = known_.empty() ? nullptr : known(words);
        if (!call) return true;
        if (call != shown) {
            for (size_t i = 0; i < call->regions.size(); ++i) {
                const GuardRegion &r = call->regions[i];
                guard_set_region(i, r.start, r.end, r.name.c_str(), r.file, r.offset);
            }
            shown = call;
        }
        guard_take_back();  // what a thread of the library wrote after its call
        parser_.layers() = call->layers;
        auto result = std::make_unique<DetectorResult>();
        guard_set_function(function_.c_str());
        try {
            result->usable = parser_.call(network_, result->boxes);
        } catch (const std::exception &) {
            result->error = std::current_exception();
        }
        channel.leave_if_forked();
        guard_set_function("");
        const size_t bytes = result->boxes.size();
        const size_t count = box_words ? bytes / (4 * box_words) : 0;
        const BoxBlock block(out, count, with_angles);
        bool plain = result->usable && !result->error && bytes == 4 * box_words * count &&
                     count <= most_boxes_ && block.bytes <= size;
        plain = plain && take_boxes(result->boxes.begin, count, 4 * box_words, block.arrays);
        if (!plain) {
            parser_.keep(std::move(result));
            return true;
        }
        words[guard_status] = words[guard_side_bytes] = 0;
        words[guard_output_size] = size;
        words[guard_values] = count;
        words[guard_values + 1] = count && with_angles ? guard_has_angles : 0;
        words[guard_wrote] = guard_take_back();
        if (!channel.answer()) return false;
    }
    return false;
}
