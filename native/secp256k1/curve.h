// Points of the curve y^2 = x^3 + 7 (SEC 2, 2.4.1) in Jacobian coordinates, x = X/Z^2, y = Y/Z^3, by the usual formulas
// (https://hyperelliptic.org/EFD/g1p/auto-shortw-jacobian-0.html). Every sum is right, also of equal and of opposite points.
#pragma once

#include "field.h"
#include "scalar.h"

namespace secp256k1 {

struct Affine {
  Field x, y;
};

// Limbs of x and y are settled, those of z below 2^53.1. The point at infinity has z = 0.
struct Point {
  Field x, y, z;
};

constexpr Point kInfinity = {kFieldOne, kFieldOne, kFieldZero};

inline Field curveOf(const Field& x) { return plus(times(squared(x), x), Field{{7, 0, 0, 0, 0}}); }

inline bool isInfinite(const Point& a) { return isNothing(a.z); }

inline Field negative(const Field& a) { return settled(minus<53>(kFieldZero, a)); }

// dbl-2009-l. Of infinity infinity; there is no point with y = 0.
inline Point doubled(const Point& p) {
  Field a = squared(p.x);
  Field b = squared(p.y);
  Field c = squared(b);
  Field d = settled(twice(minus<53>(minus<53>(squared(plus(p.x, b)), a), c)));
  Field e = plus(twice(a), a);
  Field x = settled(minus<54>(squared(e), twice(d)));
  Field y = settled(minus<56>(times(e, minus<53>(d, x)), twice(twice(twice(c)))));
  return {x, y, twice(times(p.y, p.z))};
}

// What sums have in common: u1, s1 of the first point and u2, s2 of the second, over the same denominators; `zs`: both z.
inline Point joined(const Point& first, const Field& u1, const Field& s1, const Field& u2, const Field& s2, const Field& zs) {
  Field h = minus<53>(u2, u1);
  Field r = minus<53>(s2, s1);
  if (isNothing(h)) return isNothing(r) ? doubled(first) : kInfinity;
  Field hh = squared(h);
  Field hhh = times(h, hh);
  Field v = times(u1, hh);
  Field x = settled(minus<54>(minus<53>(squared(r), hhh), twice(v)));
  Field y = settled(minus<53>(times(r, minus<53>(v, x)), times(s1, hhh)));
  return {x, y, times(zs, h)};
}

inline Point added(const Point& a, const Affine& b, bool isNegative) {
  Field by = isNegative ? negative(b.y) : b.y;
  if (isInfinite(a)) return {b.x, by, kFieldOne};
  Field zz = squared(a.z);
  return joined(a, a.x, a.y, times(b.x, zz), times(by, times(zz, a.z)), a.z);
}

inline Point added(const Point& a, const Point& b, bool isNegative) {
  Point other = {b.x, isNegative ? negative(b.y) : b.y, b.z};
  if (isInfinite(a)) return other;
  if (isInfinite(b)) return a;
  Field az = squared(a.z);
  Field bz = squared(b.z);
  return joined(a, times(a.x, bz), times(a.y, times(bz, b.z)), times(b.x, az), times(other.y, times(az, a.z)),
                times(a.z, b.z));
}

// Not of infinity.
inline Affine affineOf(const Point& a) {
  Field inverse = inverted(a.z);
  Field square = squared(inverse);
  return {times(a.x, square), times(a.y, times(square, inverse))};
}

constexpr int kKeyWidth = 5;
constexpr int kBaseWidth = 8;
constexpr int kKeyMultiples = 1 << (kKeyWidth - 2);
constexpr int kBaseMultiples = 1 << (kBaseWidth - 2);

constexpr Number kBaseX = {{0x59f2815b16f81798, 0x029bfcdb2dce28d9, 0x55a06295ce870b07, 0x79be667ef9dcbbac}};
constexpr Number kBaseY = {{0x9c47d08ffb10d4b8, 0xfd17b448a6855419, 0x5da4fbfc0e1108a8, 0x483ada7726a3c465}};

// 1, 3, 5 ... times the base point.
struct BaseTable {
  Affine multiple[kBaseMultiples];

  BaseTable() {
    Point point = {fieldOf(kBaseX), fieldOf(kBaseY), kFieldOne};
    Point two = doubled(point);
    for (Affine& each : multiple) {
      each = affineOf(point);
      point = added(point, two, false);
    }
  }
};

// ofBase * base point + ofKey * key.
inline Point combined(const BaseTable& base, const Number& ofBase, const Number& ofKey, const Affine& key) {
  int8_t baseDigits[kDigits];
  int8_t keyDigits[kDigits];
  scalar::digitsOf(ofBase.word, kBaseWidth, baseDigits);
  scalar::digitsOf(ofKey.word, kKeyWidth, keyDigits);
  Point multiples[kKeyMultiples];
  multiples[0] = {key.x, key.y, kFieldOne};
  Point two = doubled(multiples[0]);
  for (int at = 1; at < kKeyMultiples; at += 1) multiples[at] = added(multiples[at - 1], two, false);
  int place = kDigits - 1;
  while (place >= 0 && keyDigits[place] == 0 && baseDigits[place] == 0) place -= 1;
  Point sum = kInfinity;
  for (; place >= 0; place -= 1) {
    sum = doubled(sum);
    int digit = keyDigits[place];
    if (digit != 0) sum = added(sum, multiples[(digit < 0 ? -digit : digit) / 2], digit < 0);
    digit = baseDigits[place];
    if (digit != 0) sum = added(sum, base.multiple[(digit < 0 ? -digit : digit) / 2], digit < 0);
  }
  return sum;
}

}  // namespace secp256k1
