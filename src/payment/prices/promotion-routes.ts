import { json, type PaymentRoute, plainAnswer } from '../requests/payment-route.js'
import { guardedBy } from '../requests/token-guard.js'
import type { Promotion, Promotions } from './promotions.js'

const bodyMax = 4096
const codeShape = /^[A-Za-z0-9_-]{1,64}$/

/** Where the operator declares promotions, with a token under the common secret. */
export function promotionRoutes(promotions: Promotions, secret: string, now: () => number): PaymentRoute[] {
  return [
    {
      path: '/v1/promotions',
      summary: 'Declares a promotion; a second one of the same code replaces the first',
      statuses: [200, 400, 401],
      method: 'POST',
      bodyMax,
      operator: true,
      answer: guardedBy(
        secret,
        now,
      )(async ({ body }) => {
        const promotion = readPromotion(body)
        if (promotion === undefined) return plainAnswer(400, 'Invalid promotion')
        await promotions.declare(promotion)
        return json(promotion)
      }),
    },
  ]
}

/** A promotion as JSON with all of its members; undefined where one of them is missing or out of its bounds. */
function readPromotion(body: Uint8Array): Promotion | undefined {
  const given = parse(body)
  const whole = (name: keyof Promotion, least: number, most: number): number | undefined => {
    const value = given?.[name]
    const isFit = typeof value === 'number' && Number.isSafeInteger(value) && value >= least && value <= most
    return isFit ? value : undefined
  }
  const code = given?.code
  const isForNew = given?.isForNew
  const permille = whole('permille', 1, 1000)
  const expiresMs = whole('expiresMs', 1, 8.64e15)
  const leastMicroUsd = whole('leastMicroUsd', 0, 1e12)
  const mostMicroUsd = whole('mostMicroUsd', 1, 1e12)
  const usesMax = whole('usesMax', 0, 1e9)
  if (typeof code !== 'string' || !codeShape.test(code) || typeof isForNew !== 'boolean') return undefined
  if (permille === undefined || expiresMs === undefined || leastMicroUsd === undefined) return undefined
  if (mostMicroUsd === undefined || usesMax === undefined) return undefined
  return { code, permille, expiresMs, leastMicroUsd, mostMicroUsd, usesMax, isForNew }
}

function parse(body: Uint8Array): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(body).toString())
    return typeof value === 'object' && value !== null ? { ...value } : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
