import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { SourceRates } from './price-sources.js'
import { type Asset, assets, currencies, type Rates } from './rates.js'

/** Prices that are so many times each other contradict each other. */
const farMax = 2n
/** One answer moves a price by a quarter at most. A true change is confirmed a minute later. */
const stepParts = 4n

/** The agreed prices. `isWitnessed`: each price of a token comes from two sources or more. */
export interface Agreed {
  readonly rates: Rates
  readonly isWitnessed: boolean
}

function areFar(one: bigint, two: bigint): boolean {
  return one > two * farMax || two > one * farMax
}

/** True where any price is far from what it was. */
export function isFar(before: Rates, now: Rates): boolean {
  return (
    assets.some((asset) => areFar(before.usd[asset], now.usd[asset])) ||
    currencies.some((currency) => areFar(before.perUsd[currency], now.perUsd[currency]))
  )
}

/** The prices as far as one step brings them. */
export function stepped(before: Rates, now: Rates): Rates {
  const step = (from: bigint, to: bigint): bigint => {
    const [least, most] = [from - from / stepParts, from + from / stepParts]
    if (to < least) return least
    return to > most ? most : to
  }
  return mapped(
    (asset) => step(before.usd[asset], now.usd[asset]),
    (currency) => step(before.perUsd[currency], now.perUsd[currency]),
  )
}

function mapped(
  usd: (asset: Asset) => bigint,
  perUsd: (currency: (typeof currencies)[number]) => bigint,
): Rates {
  return {
    usd: Object.fromEntries(assets.map((asset) => [asset, usd(asset)])) as Rates['usd'],
    perUsd: Object.fromEntries(currencies.map((one) => [one, perUsd(one)])) as Rates['perUsd'],
  }
}

function middle(values: readonly bigint[]): bigint {
  const sorted = [...values].sort((one, two) => (one < two ? -1 : 1))
  const at = sorted.length >> 1
  const [low = 0n, high = 0n] = [sorted[at - 1], sorted[at]]
  return sorted.length % 2 === 1 ? high : (low + high) / 2n
}

/**
 * One price from the answers of several sources. `able`: how many of them should answer. Of three, one may be false, wrong or
 * absent. Of two, one may be absent where the other is near the previous price. Where two contradict each other, the one near the
 * previous price counts. Without a previous price there is no result.
 */
function oneOf(prices: readonly bigint[], able: number, before: bigint | undefined): bigint | Refusal {
  const isNear = (value: bigint): boolean => before !== undefined && !areFar(value, before)
  const few = refuse('upstream', 'upstream', 'too few sources of prices have answered')
  if (prices.length === 0) return few
  if (prices.length * 2 <= able) {
    const [only = 0n] = prices
    // Without anything to compare with, it is as good as the only source of an operator who names one.
    return able === 2 && (before === undefined || isNear(only)) ? only : few
  }
  const [one = 0n, two = 0n] = prices
  if (prices.length === 2 && areFar(one, two)) {
    const near = prices.filter(isNear)
    return near.length === 1
      ? middle(near)
      : refuse('upstream', 'upstream', 'sources of prices contradict each other')
  }
  return middle(prices)
}

/** The prices on which sources agree, or a refusal. `able`: the assets that each of them should know. */
export function together(
  answers: readonly (SourceRates | undefined)[],
  able: readonly (readonly Asset[])[],
  before: Rates | undefined,
): Agreed | Refusal {
  let failure: Refusal | undefined
  let isWitnessed = true
  const take = (
    values: readonly (bigint | undefined)[],
    ableCount: number,
    was: bigint | undefined,
  ): bigint => {
    const found = values.filter((value) => value !== undefined)
    const price = oneOf(found, ableCount, was)
    if (isRefusal(price)) failure ??= price
    return isRefusal(price) ? 0n : price
  }
  const rates = mapped(
    (asset) => {
      const values = answers.map((one) => one?.usd[asset])
      if (values.filter((value) => value !== undefined).length < 2) isWitnessed = false
      return take(values, able.filter((list) => list.includes(asset)).length, before?.usd[asset])
    },
    (currency) =>
      take(
        answers.map((one) => one?.perUsd[currency]),
        answers.length,
        before?.perUsd[currency],
      ),
  )
  return failure ?? { rates, isWitnessed }
}
