// Points of the curve -x^2 + y^2 = 1 + d x^2 y^2 (RFC 8032, 5.1), in the coordinates of Hisil, Wong, Carter and Dawson, "Twisted
// Edwards Curves Revisited" (2008). `Curve` is for public points only: what it does depends on the numbers. Doubling and adding what
// is not negative take the same steps for all points.
#pragma once

#include "field.h"
#include "scalar.h"

namespace ed25519 {

// x = X/Z, y = Y/Z.
struct Projective {
  Field x, y, z;
};

// And x y = T/Z.
struct Extended {
  Field x, y, z, t;
};

// x = X/Z, y = Y/T: what doubling and adding leave.
struct Completed {
  Field x, y, z, t;
};

// A point to be added: y + x, y - x, z, 2 d t.
struct Addend {
  Field sum, difference, z, t;
};

// The same with z = 1.
struct AffineAddend {
  Field sum, difference, t;
};

inline Projective projectiveOf(const Completed& a) {
  return {times(a.x, a.t), times(a.y, a.z), times(a.z, a.t)};
}

inline Extended extendedOf(const Completed& a) {
  return {times(a.x, a.t), times(a.y, a.z), times(a.z, a.t), times(a.x, a.y)};
}

inline Completed doubled(const Field& x, const Field& y, const Field& z) {
  Field xx = squared(x);
  Field yy = squared(y);
  Field zz = squared(z);
  Field sum = plus(yy, xx);
  Field difference = minus(yy, xx);
  return {minus(squared(plus(x, y)), sum), sum, difference, minusWide(plus(zz, zz), difference)};
}

// Adds what is given by its y + x, y - x and 2 d t, and twice the product of both z. Its negative has the first two exchanged, and
// the negative of the third.
inline Completed joined(const Extended& a, const Field& sum, const Field& difference, const Field& t, const Field& twiceZ,
                        bool isNegative) {
  Field first = times(plus(a.y, a.x), isNegative ? difference : sum);
  Field second = times(minus(a.y, a.x), isNegative ? sum : difference);
  Field third = times(t, a.t);
  Field more = plus(twiceZ, third);
  Field less = minus(twiceZ, third);
  return isNegative ? Completed{minus(first, second), plus(first, second), less, more}
                    : Completed{minus(first, second), plus(first, second), more, less};
}

inline Completed added(const Extended& a, const Addend& b, bool isNegative) {
  Field z = times(a.z, b.z);
  return joined(a, b.sum, b.difference, b.t, plus(z, z), isNegative);
}

inline Completed added(const Extended& a, const AffineAddend& b, bool isNegative) {
  return joined(a, b.sum, b.difference, b.t, plus(a.z, a.z), isNegative);
}

constexpr int kKeyWidth = 5;
constexpr int kBaseWidth = 8;
constexpr int kKeyMultiples = 1 << (kKeyWidth - 2);
constexpr int kBaseMultiples = 1 << (kBaseWidth - 2);

// What is made of the few numbers that define the curve.
struct Curve {
  Field d, twiceD, rootOfMinusOne;
  // 1, 3, 5 ... times the base point.
  AffineAddend base[kBaseMultiples];

  Curve() {
    const Field numerator = {{121665, 0, 0, 0, 0}};
    const Field denominator = {{121666, 0, 0, 0, 0}};
    d = times(minus(kZero, numerator), inverted(denominator));
    twiceD = plus(d, d);
    // 2 is no square, so 2^((p - 1) / 4) is a root of -1; (p - 1) / 4 = 2 (p - 5) / 8 + 1.
    const Field two = {{2, 0, 0, 0, 0}};
    rootOfMinusOne = times(squared(rootPower(two)), two);
    Extended point = basePoint();
    Addend twice = addendOf(extendedOf(doubled(point.x, point.y, point.z)));
    for (AffineAddend& each : base) {
      each = affineOf(point);
      point = extendedOf(added(point, twice, false));
    }
  }

  // y = 4/5, and the even x.
  Extended basePoint() const {
    const Field four = {{4, 0, 0, 0, 0}};
    const Field five = {{5, 0, 0, 0, 0}};
    uint8_t bytes[32];
    bytesOf(times(four, inverted(five)), bytes);
    Extended point{};
    decode(bytes, point);
    return point;
  }

  AffineAddend affineOf(const Extended& a) const {
    Field inverse = inverted(a.z);
    Field x = times(a.x, inverse);
    Field y = times(a.y, inverse);
    return {plus(y, x), minus(y, x), times(times(x, y), twiceD)};
  }

  Addend addendOf(const Extended& a) const {
    return {plus(a.y, a.x), minus(a.y, a.x), a.z, times(a.t, twiceD)};
  }

  // The point of 32 bytes; false: they are none. As OpenSSL does, takes y from p on for y - p, and -0 for 0.
  bool decode(const uint8_t* bytes, Extended& out) const {
    Field y = fieldOf(bytes);
    Field yy = squared(y);
    Field u = minus(yy, kOne);
    Field v = plus(times(yy, d), kOne);
    // x = (u/v)^((p+3)/8) = u v^3 (u v^7)^((p-5)/8).
    Field v3 = times(squared(v), v);
    Field x = times(times(rootPower(times(times(squared(v3), v), u)), v3), u);
    Field check = times(squared(x), v);
    if (!areEqual(check, u)) {
      if (!areEqual(check, minusWide(kZero, u))) return false;
      x = times(x, rootOfMinusOne);
    }
    if (isOdd(x) != (bytes[31] >> 7 != 0)) x = minus(kZero, x);
    out = {x, y, kOne, times(x, y)};
    return true;
  }

  // The 32 bytes of number * point + ofBase * base point; both numbers are four words, below 2^253.
  void combine(const uint64_t* number, const Extended& point, const uint64_t* ofBase, uint8_t* out) const {
    int8_t keyDigits[kDigits];
    int8_t baseDigits[kDigits];
    scalar::digitsOf(number, kKeyWidth, keyDigits);
    scalar::digitsOf(ofBase, kBaseWidth, baseDigits);
    Addend multiples[kKeyMultiples];
    Addend twice = addendOf(extendedOf(doubled(point.x, point.y, point.z)));
    Extended multiple = point;
    for (int at = 0; at < kKeyMultiples; at += 1) {
      multiples[at] = addendOf(multiple);
      if (at + 1 < kKeyMultiples) multiple = extendedOf(added(multiple, twice, false));
    }
    int place = kDigits - 1;
    while (place >= 0 && keyDigits[place] == 0 && baseDigits[place] == 0) place -= 1;
    Projective sum = {kZero, kOne, kOne};
    for (; place >= 0; place -= 1) {
      Completed next = doubled(sum.x, sum.y, sum.z);
      int key = keyDigits[place];
      if (key != 0) next = added(extendedOf(next), multiples[(key < 0 ? -key : key) / 2], key < 0);
      int base_ = baseDigits[place];
      if (base_ != 0) next = added(extendedOf(next), base[(base_ < 0 ? -base_ : base_) / 2], base_ < 0);
      sum = projectiveOf(next);
    }
    Field inverse = inverted(sum.z);
    bytesOf(times(sum.y, inverse), out);
    if (isOdd(times(sum.x, inverse))) out[31] |= 0x80;
  }
};

}  // namespace ed25519
