import type { Outbox } from '../letters/outbox.js'
import { json, type PaymentRoute, plainAnswer } from '../requests/payment-route.js'
import { guardedBy } from '../requests/token-guard.js'
import type { Reconciler } from './reconciliation.js'

const listMax = 500

/** What the operator looks at, with a token under the common secret. */
export function operatorRoutes(
  outbox: Outbox,
  reconciler: Reconciler,
  secret: string,
  now: () => number,
): PaymentRoute[] {
  const guarded = guardedBy(secret, now)
  return [
    {
      path: '/v1/outbox',
      summary: 'Letters about gifts, and whether they were sent',
      statuses: [200, 401],
      query: ['cursor'],
      operator: true,
      answer: guarded(async ({ query }) => {
        const letters = await outbox.list(query.get('cursor') ?? '', listMax)
        const cursor = letters.length < listMax ? null : (letters.at(-1)?.gift ?? null)
        return json({ letters, cursor })
      }),
    },
    {
      path: '/v1/reconciliations',
      summary: 'What comparing each day with the card provider and the chains has found, youngest first',
      statuses: [200, 401],
      operator: true,
      answer: guarded(async () => json({ reconciliations: await reconciler.list(listMax) })),
    },
    {
      path: '/v1/reconciliations/{day}',
      summary: 'Compares one day now',
      statuses: [200, 400, 401],
      method: 'POST',
      operator: true,
      answer: guarded(async ({ path: [day = ''] }) => {
        const isDay = /^\d{4}-\d{2}-\d{2}$/.test(day) && !Number.isNaN(Date.parse(day))
        return isDay ? json(await reconciler.compare(day)) : plainAnswer(400, 'Invalid day')
      }),
    },
  ]
}
