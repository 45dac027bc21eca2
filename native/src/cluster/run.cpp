// The order of steps of each cluster mode. Source: spec B.2 and B.3.
#include <algorithm>
#include <cstring>

#include "cluster/cluster.h"

namespace headrace::cluster {
namespace {

// Monotone map of a float's value to unsigned, so that integers sort as scores do; -0 equals +0.
std::uint32_t descending_key(float score) {
    if (score != score) return 0xFFFFFFFFu;  // NaN last
    score += 0.0f;                           // -0 becomes +0
    std::uint32_t bits;
    std::memcpy(&bits, &score, sizeof bits);
    bits = (bits & 0x80000000u) ? ~bits : bits | 0x80000000u;
    return ~bits;  // below 0xFFFFFFFF for every number
}

void take(const Input &in, const Rows &rows, std::vector<Object> &out, Trace *trace) {
    for (std::int32_t row : rows) {
        const float *b = in.boxes + 4 * static_cast<std::size_t>(row);
        if (trace) trace->object[row] = static_cast<std::int32_t>(out.size());
        out.push_back({{b[0], b[1], b[2], b[3]}, in.scores[row], row, 0});
    }
}

// Drops objects of a class and carries their fate to every member row.
class ClassList {
public:
    ClassList(std::vector<Object> &objects, const Rows &rows, Trace *trace)
        : objects_(objects), rows_(rows), trace_(trace) {}

    // DBSCAN keeps equality, unlike NMS; a NaN score is kept.
    void drop_below(float threshold) {
        std::vector<std::int32_t> order;
        for (std::size_t i = 0; i < objects_.size(); ++i)
            if (!(objects_[i].score < threshold)) order.push_back(static_cast<std::int32_t>(i));
        reorder(order, kPostThreshold);
    }

    void topk(std::int32_t k) {
        if (k < 0) return;
        std::vector<float> scores(objects_.size());
        Rows order(objects_.size());
        for (std::size_t i = 0; i < objects_.size(); ++i) {
            scores[i] = objects_[i].score;
            order[i] = static_cast<std::int32_t>(i);
        }
        sort_descending(order, scores.data());
        order.resize(std::min(order.size(), static_cast<std::size_t>(k)));
        reorder(order, kTopk);
    }

private:
    void reorder(const std::vector<std::int32_t> &order, Reason why) {
        std::vector<std::int32_t> place(trace_ ? objects_.size() : 0, -1);
        std::vector<Object> next;
        next.reserve(order.size());
        for (std::int32_t i : order) {
            if (trace_) place[i] = static_cast<std::int32_t>(next.size());
            next.push_back(objects_[i]);
        }
        objects_.swap(next);
        if (!trace_) return;
        for (std::int32_t row : rows_) {
            std::int32_t &object = trace_->object[row];
            if (object < 0) continue;
            if (place[object] < 0)
                trace_->drop(row, why);
            else
                object = place[object];
        }
    }

    std::vector<Object> &objects_;
    const Rows &rows_;
    Trace *trace_;
};

// Returns how many rows were left out.
std::size_t run_class(const Input &in, const Rows &rows, const ClassParams &p, Mode mode,
                      std::vector<Object> &out, Trace *trace, Patience &patience) {
    ClassList list(out, rows, trace);
    switch (mode) {
    case kGroupRectangles: group_rectangles(in, rows, p, out, trace, patience); break;
    case kDbscan:
        if (p.min_boxes > 0)
            dbscan_merge(in, rows, p, out, trace, patience);
        else
            take(in, rows, out, trace);
        list.drop_below(p.post_threshold);
        list.topk(p.topk);
        break;
    case kNms: return nms(in, rows, p, out, trace, patience);
    case kHybrid:
        if (p.min_boxes > 0)
            return nms(in, dbscan_members(in, rows, p, trace, patience), p, out, trace, patience);
        return nms(in, rows, p, out, trace, patience);
    case kNone:
        take(in, rows, out, trace);
        list.topk(p.topk);
        break;
    }
    return 0;
}

// Leaves the best `most` rows of all classes, in their order; returns how many went.
std::size_t cut_to(std::size_t most, const Input &in, std::vector<Rows> &classes, Trace *trace) {
    std::vector<std::uint64_t> keys;
    const auto key_of = [&](std::int32_t row) {
        return static_cast<std::uint64_t>(descending_key(in.scores[row])) << 32 |
               static_cast<std::uint32_t>(row);
    };
    for (const Rows &rows : classes)
        for (std::int32_t row : rows) keys.push_back(key_of(row));
    const auto last = keys.begin() + static_cast<std::ptrdiff_t>(most);
    std::nth_element(keys.begin(), last, keys.end());
    const std::uint64_t limit = *last;
    for (Rows &rows : classes) {
        const auto goes = [&](std::int32_t row) { return key_of(row) >= limit; };
        for (std::int32_t row : rows)
            if (trace && goes(row)) trace->drop(row, kMaxCandidates);
        rows.erase(std::remove_if(rows.begin(), rows.end(), goes), rows.end());
    }
    return keys.size() - most;
}

// Adds the objects of all classes to `result`. May throw Stopped.
void cluster_classes(const Input &in, const ClassParams *params, std::int32_t num_classes,
                     Mode mode, const std::vector<Rows> &classes, Result &result, Trace *trace,
                     Patience &patience) {
    std::vector<Object> objects;
    for (std::int32_t c = 0; c < num_classes; ++c) {
        const Rows &rows = classes[static_cast<std::size_t>(c)];
        if (rows.empty()) continue;
        objects.clear();
        result.cut += run_class(in, rows, params[c], mode, objects, trace, patience);
        const auto first = static_cast<std::int32_t>(result.objects.size());
        if (trace)
            for (std::int32_t row : rows) {
                std::int32_t &object = trace->object[row];
                if (object < 0) continue;
                if (objects[static_cast<std::size_t>(object)].members) trace->reason[row] = kMerged;
                object += first;
            }
        result.objects.insert(result.objects.end(), objects.begin(), objects.end());
        result.class_ids.insert(result.class_ids.end(), objects.size(), c);
    }
}

}  // namespace

void sort_descending(Rows &rows, const float *scores) {
    thread_local std::vector<std::uint64_t> keys;
    keys.resize(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i)
        keys[i] = static_cast<std::uint64_t>(descending_key(scores[rows[i]])) << 32 | i;
    std::sort(keys.begin(), keys.end());
    thread_local Rows before;
    before = rows;
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = before[keys[i] & 0xFFFFFFFFu];
}

Result run(const Input &in, const ClassParams *params, std::int32_t num_classes, Mode mode,
           bool want_trace, std::int64_t *tally, std::size_t max_candidates, Patience &patience) {
    Result result;
    Trace *trace = nullptr;
    if (want_trace || tally) {
        trace = &result.trace;
        trace->reason.assign(in.n, kKept);
        if (want_trace) trace->by.assign(in.n, -1);
        trace->object.assign(in.n, -1);
    }
    // B.2, and one bucket of rows per class in input order.
    thread_local std::vector<Rows> classes;  // whose memory is used again
    classes.resize(std::max(classes.size(), static_cast<std::size_t>(num_classes)));
    for (Rows &rows : classes) rows.clear();
    std::size_t candidates = 0;
    for (std::size_t i = 0; i < in.n; ++i) {
        const auto row = static_cast<std::int32_t>(i);
        const std::int32_t c = in.class_ids[i];
        if (c < 0 || c >= num_classes) {
            if (trace) trace->drop(row, kClassOutOfRange);
        } else if (in.scores[i] < params[c].pre_threshold) {
            if (trace) trace->drop(row, kBelowPreThreshold);
        } else {
            classes[static_cast<std::size_t>(c)].push_back(row);
            ++candidates;
        }
    }
    if (candidates > max_candidates && mode != kNone)
        result.cut = cut_to(max_candidates, in, classes, trace);
    try {
        cluster_classes(in, params, num_classes, mode, classes, result, trace, patience);
    } catch (const Stopped &) {
        result.stopped = true;
        result.cut = candidates;
        result.objects.clear();
        result.class_ids.clear();
        for (std::int32_t c = 0; trace && c < num_classes; ++c)
            for (std::int32_t row : classes[static_cast<std::size_t>(c)])
                trace->drop(row, kMaxCandidates);
    }
    for (std::size_t i = 0; tally && i < in.n; ++i) {
        const std::int32_t c = in.class_ids[i];
        ++tally[static_cast<std::size_t>(c < 0 || c >= num_classes ? num_classes : c) * kReasons +
                trace->reason[i]];
    }
    return result;
}

}  // namespace headrace::cluster
