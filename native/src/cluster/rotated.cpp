// One convex polygon clipped by the sides of the other. Source: Sutherland and Hodgman, 1974.
#include "cluster/rotated.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/suppression.h"

namespace headrace::cluster {
namespace {

struct Point {
    double x, y;
};

// A quadrangle that four lines cut has at most eight corners; one more is the room of a step.
struct Polygon {
    std::array<Point, 12> points;
    int n = 0;

    void add(Point p) { points[static_cast<std::size_t>(n++)] = p; }
    const Point &at(int i) const { return points[static_cast<std::size_t>(i)]; }
};

// Corners in order of rising angle, about an origin near by: large coordinates cost no digits.
Polygon corners(const float *box, double angle, Point origin) {
    const double a = box[2] / 2.0, b = box[3] / 2.0, sin = std::sin(angle), cos = std::cos(angle);
    const double x = box[0] + a - origin.x, y = box[1] + b - origin.y;
    Polygon found;
    for (const Point s : {Point{-a, -b}, Point{a, -b}, Point{a, b}, Point{-a, b}})
        found.add({x + s.x * cos - s.y * sin, y + s.x * sin + s.y * cos});
    return found;
}

// What lies on the inner side of the line from p to q.
Polygon clipped(const Polygon &shape, Point p, Point q) {
    const auto side = [&](const Point &r) {
        return (q.x - p.x) * (r.y - p.y) - (q.y - p.y) * (r.x - p.x);
    };
    Polygon kept;
    for (int i = 0; i < shape.n; ++i) {
        const Point &here = shape.at(i), &next = shape.at((i + 1) % shape.n);
        const double d = side(here), e = side(next);
        if (d >= 0) kept.add(here);
        if (kept.n < 11 && ((d > 0 && e < 0) || (d < 0 && e > 0))) {
            const double t = d / (d - e);
            kept.add({here.x + t * (next.x - here.x), here.y + t * (next.y - here.y)});
        }
        if (kept.n > 10) break;  // rounding alone can come here
    }
    return kept;
}

double area(const Polygon &shape) {
    double twice = 0;
    for (int i = 0; i < shape.n; ++i) {
        const Point &p = shape.at(i), &q = shape.at((i + 1) % shape.n);
        twice += p.x * q.y - p.y * q.x;
    }
    return std::max(twice / 2, 0.0);
}

bool finite(const float *box, double angle) {
    return std::isfinite(angle) &&
           std::all_of(box, box + 4, [](float v) { return std::isfinite(v); });
}

}  // namespace

double rotated_iou(const float *a, double angle_a, const float *b, double angle_b) {
    if (!finite(a, angle_a) || !finite(b, angle_b)) return std::numeric_limits<double>::quiet_NaN();
    const double area_a = std::max(a[2], 0.0f) * static_cast<double>(std::max(a[3], 0.0f));
    const double area_b = std::max(b[2], 0.0f) * static_cast<double>(std::max(b[3], 0.0f));
    if (area_a <= 0 || area_b <= 0) return 0;
    const Point origin{a[0] + a[2] / 2.0, a[1] + a[3] / 2.0};
    // Circles around them that do not touch: most pairs of a frame end here.
    const double dx = b[0] + b[2] / 2.0 - origin.x, dy = b[1] + b[3] / 2.0 - origin.y;
    const double reach = (std::hypot(a[2], a[3]) + std::hypot(b[2], b[3])) / 2;
    if (dx * dx + dy * dy > reach * reach * 1.0001) return 0;
    Polygon common = corners(a, angle_a, origin);
    const Polygon other = corners(b, angle_b, origin);
    for (int i = 0; i < 4 && common.n; ++i)
        common = clipped(common, other.at(i), other.at((i + 1) % 4));
    const double inter = std::min(area(common), std::min(area_a, area_b));
    return core::iou_of(inter, area_a, area_b);
}

}  // namespace headrace::cluster
