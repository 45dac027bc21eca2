// Bindings of the targets of one source; Python has checked the settings.
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <variant>

#include "core/arrays.h"
#include "core/unlocked.h"
#include "module.h"
#include "track/targets.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::track {
namespace {

using core::array_of;
using core::Fill;
using core::In;
using Numbers = nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>;
using Floats = nb::ndarray<nb::numpy, float, nb::ndim<1>>;
using Boxes4 = nb::ndarray<nb::numpy, double, nb::shape<-1, 4>>;
using PlaneArray = nb::ndarray<const std::uint8_t, nb::device::cpu>;
// planes, layout, width and height, colour matrix
using HostPixels =
    std::tuple<std::vector<PlaneArray>, int, std::array<int, 2>, std::array<float, 6>>;
// gives the patches of an image that is elsewhere; width and height
using FarPixels = std::tuple<nb::callable, std::array<int, 2>>;
using Pixels = std::optional<std::variant<HostPixels, FarPixels>>;
using Features = std::optional<In<float, nb::ndim<2>>>;

class Values {
public:
    explicit Values(const nb::dict &values) : values_(values) {}
    double operator[](const char *name) const { return nb::cast<double>(values_[name]); }
    std::int64_t whole(const char *name) const { return std::int64_t((*this)[name]); }
    bool truth(const char *name) const { return (*this)[name] != 0; }

private:
    const nb::dict &values_;
};

MotionSettings motion_of(const Values &v) {
    MotionSettings m;
    m.kind = Motion(v.whole("motion"));
    m.process_loc = v["process_loc"];
    m.process_size = v["process_size"];
    m.process_vel = v["process_vel"];
    m.from_detector = v["from_detector"];
    m.from_tracker = v["from_tracker"];
    m.weight_loc = v["weight_loc"];
    m.weight_vel = v["weight_vel"];
    m.aspect = v.truth("aspect");
    m.smooth_loc = v["smooth_loc"];
    m.smooth_scale = v["smooth_scale"];
    m.smooth_vel = v["smooth_vel"];
    m.process_scale = v["process_scale"];
    m.measurement_scale = v["measurement_scale"];
    return m;
}

TargetSettings settings_of(const nb::dict &values) {
    const Values v(values);
    TargetSettings s;
    s.min_confidence = v["min_confidence"];
    s.min_tracker_confidence = v["min_tracker_confidence"];
    s.max_new_iou = v["max_new_iou"];
    s.duplicate_iou = v["duplicate_iou"];
    s.min_size = v["min_size"];
    s.max_targets = v.whole("max_targets");
    s.probation = v.whole("probation");
    s.max_shadow = v.whole("max_shadow");
    s.early = v.whole("early");
    s.duplicate_interval = v.whole("duplicate_interval");
    s.history = v.whole("history");
    s.unclip = v.truth("unclip");
    s.matcher = Matcher(v.whole("matcher"));
    s.use_prediction = v.truth("use_prediction");
    s.min_overall = v["min_overall"];
    s.min_size_similarity = v["min_size_similarity"];
    s.min_iou = v["min_iou"];
    s.min_visual = v["min_visual"];
    s.min_reid = v["min_reid"];
    s.weight_iou = v["weight_iou"];
    s.weight_size = v["weight_size"];
    s.weight_visual = v["weight_visual"];
    s.weight_reid = v["weight_reid"];
    s.weight_age = v["weight_age"];
    s.tentative_confidence = v["tentative_confidence"];
    s.tentative_iou = v["tentative_iou"];
    s.mahalanobis = v["mahalanobis"];
    s.reid_history = v.whole("reid_history");
    s.motion = motion_of(v);
    if (v.truth("visual"))
        s.visual =
            VisualSettings{v.truth("colors"), v.truth("edges"), int(v.whole("side")), v["focus"],
                           v["filter_rate"],  v["weight_rate"], v["sigma"],           v["padding"]};
    return s;
}

// Patches come from a function: columns and rows of all samples in, bytes out.
class FarImage : public Image {
public:
    FarImage(const FarPixels &pixels, std::array<int, 2> of_boxes)
        : Image(std::get<1>(pixels), of_boxes), read_(std::get<0>(pixels)) {}

    const std::uint8_t *patch(std::size_t region) override {
        return rgb_.data() + region * 3 * samples_ * samples_;
    }

protected:
    void fetch() override {
        const std::size_t side = samples_, count = side ? across_.size() / side : 0;
        rgb_.resize(count * 3 * side * side);
        if (!count) return;
        nb::gil_scoped_acquire hold;
        using Places = nb::ndarray<nb::numpy, std::int32_t, nb::ndim<2>>;
        const nb::object got = read_(Places(array_of(std::vector(across_), {count, side})),
                                     Places(array_of(std::vector(down_), {count, side})));
        using Patches = nb::ndarray<const std::uint8_t, nb::ndim<4>, nb::c_contig, nb::device::cpu>;
        const auto patches = nb::cast<Patches>(got);
        if (patches.shape(0) != count || patches.shape(1) != 3 || patches.shape(2) != side ||
            patches.shape(3) != side)
            throw nb::value_error("patches have another shape than was asked for");
        std::copy_n(patches.data(), rgb_.size(), rgb_.data());
    }

private:
    const nb::callable &read_;
    std::vector<std::uint8_t> rgb_;
};

std::unique_ptr<Image> image_of(const Pixels &pixels, std::array<int, 2> of_boxes) {
    if (!pixels) return nullptr;
    if (const auto *far = std::get_if<FarPixels>(&*pixels))
        return std::make_unique<FarImage>(*far, of_boxes);
    const auto &[arrays, layout, size, matrix] = std::get<HostPixels>(*pixels);
    std::array<preprocess::PlaneView, 3> planes = {};
    for (std::size_t i = 0; i < arrays.size() && i < planes.size(); ++i)
        planes[i] = {arrays[i].data(), std::ptrdiff_t(arrays[i].stride(0))};
    const preprocess::ColorMatrix colors = {matrix[0], matrix[1], matrix[2],
                                            matrix[3], matrix[4], matrix[5]};
    return std::make_unique<HostImage>(preprocess::Layout(layout), planes, colors, size, of_boxes);
}

class Targets {
public:
    explicit Targets(const nb::dict &values) : set_(settings_of(values)) {}

    void step(const TrackedObjects &objects, std::int64_t elapsed, std::array<int, 2> size,
              const Pixels &pixels, const Features &features) {
        if (features && features->shape(0) != objects.size())
            throw nb::value_error("a row of features for each object is needed");
        const auto image = image_of(pixels, size);
        const Looks looks = features ? Looks{features->data(), features->shape(1)} : Looks{};
        core::Unlocked release(image || objects.size() + set_.targets().size() > core::kFew / 8);
        set_.step(objects, elapsed, image.get(), looks, {double(size[0]), double(size[1])});
    }

    void change(const nb::dict &values) { set_.change(settings_of(values)); }

    void pass_over(std::int64_t elapsed, std::array<int, 2> size, const Pixels &pixels) {
        const auto image = image_of(pixels, size);
        core::Unlocked release(image != nullptr);
        set_.pass_over(elapsed, image.get(), {double(size[0]), double(size[1])});
    }

    Numbers fresh() const {
        std::vector<std::int64_t> keys;
        for (const Target &t : set_.targets())
            if (t.state == State::kActive && !t.id) keys.push_back(t.key);
        return Numbers(array_of(std::move(keys)));
    }

    Numbers keys() const {
        std::vector<std::int64_t> keys;
        for (const std::int32_t t : set_.of_objects())
            keys.push_back(t < 0 ? 0 : set_.targets()[std::size_t(t)].key);
        return Numbers(array_of(std::move(keys)));
    }

    void results(Fill<std::int64_t, nb::ndim<1>> ids, Fill<float, nb::ndim<1>> confidences,
                 Fill<double, nb::shape<-1, 4>> boxes) const {
        const auto &places = set_.of_objects();
        if (ids.shape(0) != places.size() || confidences.shape(0) != places.size() ||
            boxes.shape(0) != places.size())
            throw nb::value_error("room for each object of the last step is needed");
        for (std::size_t i = 0; i < places.size(); ++i) {
            ids.data()[i] = 0;
            confidences.data()[i] = 0;
            if (places[i] < 0) continue;
            const Target &t = set_.targets()[std::size_t(places[i])];
            if (t.state != State::kActive) continue;
            ids.data()[i] = t.id;
            confidences.data()[i] = t.confidence;
            const Box box = t.motion.state().box();
            std::copy(box.begin(), box.end(), boxes.data() + 4 * i);
        }
    }

    // keys, ids, states, ages, shadow ages, boxes, confidences, groups
    std::tuple<Numbers, Numbers, Numbers, Numbers, Numbers, Boxes4, Floats, Numbers> states()
        const {
        std::array<std::vector<std::int64_t>, 6> columns;
        std::vector<double> boxes;
        std::vector<float> confidences;
        for (const Target &t : set_.targets()) {
            const std::int64_t row[] = {t.key, t.id,     std::int64_t(t.state),
                                        t.age, t.shadow, t.group};
            for (std::size_t k = 0; k < 6; ++k) columns[k].push_back(row[k]);
            const Box box = t.motion.state().box();
            boxes.insert(boxes.end(), box.begin(), box.end());
            confidences.push_back(t.confidence);
        }
        const std::size_t n = confidences.size();
        const auto column = [&](std::size_t k) { return Numbers(array_of(std::move(columns[k]))); };
        return {column(0),
                column(1),
                column(2),
                column(3),
                column(4),
                Boxes4(array_of(std::move(boxes), {n, 4})),
                Floats(array_of(std::move(confidences))),
                column(5)};
    }

    Numbers ended() const {
        std::vector<std::int64_t> ids;
        for (const Target &t : set_.ended())
            if (t.id) ids.push_back(t.id);
        return Numbers(array_of(std::move(ids)));
    }

    nb::ndarray<nb::numpy, double, nb::shape<-1, 5>> way(std::int64_t key) const {
        std::vector<double> flat;
        for (const auto *some : {&set_.targets(), &set_.ended()})
            for (const Target &t : *some)
                if (t.key == key)
                    for (const auto &row : t.way) flat.insert(flat.end(), row.begin(), row.end());
        const std::size_t n = flat.size() / 5;
        return nb::ndarray<nb::numpy, double, nb::shape<-1, 5>>(array_of(std::move(flat), {n, 5}));
    }

    void name(std::int64_t key, std::int64_t id) { set_.name(key, id); }
    std::size_t size() const { return set_.targets().size(); }

private:
    TargetSet set_;
};

// The boxes of frames to come, by an estimator that has seen those of the frames before.
Boxes4 project(In<double, nb::shape<-1, 4>> boxes, const nb::dict &values, std::int64_t frames) {
    const MotionSettings settings = motion_of(Values(values));
    std::vector<double> flat;
    if (boxes.shape(0)) {
        const auto at = [&](std::size_t i) {
            const double *b = boxes.data() + 4 * i;
            return Placement::of({b[0], b[1], b[2], b[3]});
        };
        Estimator estimator(settings, at(0));
        for (std::size_t i = 1; i < boxes.shape(0); ++i) {
            estimator.predict(1);
            estimator.correct(at(i), true);
        }
        for (std::int64_t k = 0; k < frames; ++k) {
            estimator.predict(1);
            const Box box = estimator.state().box();
            flat.insert(flat.end(), box.begin(), box.end());
        }
    }
    const std::size_t n = flat.size() / 4;
    return Boxes4(array_of(std::move(flat), {n, 4}));
}

// What an estimator makes of a row of detected boxes.
std::tuple<std::vector<std::array<double, 4>>, std::vector<double>> distances(
    In<double, nb::shape<-1, 4>> boxes, const nb::dict &values) {
    const MotionSettings settings = motion_of(Values(values));
    std::vector<std::array<double, 4>> states;
    std::vector<double> distances;
    const auto at = [&](std::size_t i) {
        const double *b = boxes.data() + 4 * i;
        return Placement::of({b[0], b[1], b[2], b[3]});
    };
    std::optional<Estimator> estimator;
    for (std::size_t i = 0; i < boxes.shape(0); ++i) {
        if (!estimator) {
            estimator.emplace(settings, at(0));
            distances.push_back(0);
        } else {
            estimator->predict(1);
            distances.push_back(estimator->distance(at(i)));
            estimator->correct(at(i), true);
        }
        states.push_back(estimator->state().box());
    }
    return {states, distances};
}

}  // namespace

void bind_targets(nb::module_ &m) {
    nb::class_<Targets>(m, "Targets", "The targets of one source, by the original's rules.")
        .def(nb::init<const nb::dict &>(), "values"_a)
        .def(
            "step", &Targets::step, "objects"_a, "elapsed"_a, "size"_a, "pixels"_a.none(),
            "looks"_a.none(),
            "Continue, start and end targets with the objects of a frame. `pixels` are the "
            "planes, their layout, width and height, and the colour matrix; or of an image that is "
            "elsewhere a function of columns and rows (N, S) int32 that gives patches (N, 3, S, S) "
            "uint8, and width and height. Releases the GIL.")
        .def("pass_over", &Targets::pass_over, "elapsed"_a, "size"_a, "pixels"_a.none(),
             "A frame that no detector looked at: targets are followed by their look, or move on.")
        .def("change", &Targets::change, "values"_a,
             "Take other numbers from the next frame on; those of motion and features must be the "
             "same.")
        .def("fresh", &Targets::fresh, "Keys of the targets that are reported and have no id.")
        .def("keys", &Targets::keys, "The target of each object of the last step, 0 without.")
        .def("results", &Targets::results, "ids"_a, "confidences"_a, "boxes"_a,
             "Fill in the id of each object of the last step (0: not reported), and where it has "
             "one, the tracker's confidence and box.")
        .def("states", &Targets::states,
             "Of all targets: keys, ids, states, ages, shadow ages, boxes, confidences, groups.")
        .def("ended", &Targets::ended, "Ids of the targets that ended in the last step.")
        .def("way", &Targets::way, "key"_a,
             "(T, 5) frame, left, top, right, bottom of a target's last frames.")
        .def("name", &Targets::name, "key"_a, "id"_a,
             "Give a target its id; another one in the shadow that has it ends.")
        .def("__len__", &Targets::size);
    m.def("project_boxes", &project, "boxes"_a, "values"_a, "frames"_a,
          "(frames, 4) boxes to come, by an estimator that has seen (T, 4) of before.");
    m.def("estimate_boxes", &distances, "boxes"_a, "values"_a,
          "The estimator's boxes after each of (T, 4), and the squared Mahalanobis distance of "
          "each from the one predicted.");
}

}  // namespace headrace::track
