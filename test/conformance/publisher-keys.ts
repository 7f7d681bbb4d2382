import type { Test } from 'tap'
import type { PublisherKeys } from '../../src/bands/publisher-keys.js'
import type { Subscription } from '../../src/bands/subscription.js'
import { isRefusal } from '../../src/format/refusal.js'

export interface PublisherKeysCase {
  readonly keys: PublisherKeys
  /** Publishers that are known, and the keys that may sign for them. */
  readonly known: readonly (readonly [Subscription, readonly string[]])[]
  readonly unknown: Subscription
}

/** What everything that knows the keys of publishers does. */
export async function conformPublisherKeys(
  t: Test,
  { keys, known, unknown }: PublisherKeysCase,
): Promise<void> {
  const { signal } = new AbortController()
  await t.test('who is known has his keys, and no others', async (t) => {
    for (const [subscription, keyIds] of known) {
      const found = await keys.of(subscription, signal)
      if (isRefusal(found)) throw new Error(found.message)
      t.same([...found.keyIds].sort(), [...keyIds].sort())
      if ('publisher' in subscription) t.equal(found.publisher, subscription.publisher)
    }
  })

  await t.test('who is not known is refused as such, not failed', async (t) => {
    const found = await keys.of(unknown, signal)
    t.equal(isRefusal(found) && found.refused, 'unknown')
  })

  await t.test('questions at once have the answers of questions alone', async (t) => {
    const found = await Promise.all([...known, ...known].map(([one]) => keys.of(one, signal)))
    t.notOk(found.some(isRefusal))
  })
}
