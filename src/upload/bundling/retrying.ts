import type { Id } from '../../format/id.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import { tryWrite } from '../../store/disk-error.js'
import type { BundleRecord } from './bundle-records.js'
import type { BundlerParts } from './bundler-parts.js'
import { againMaxMs } from './due.js'

/** Until a failed step is tried again; doubles up to the longest. */
const againMs = 1000
const stepsMax = 20
/** Until a step is tried again whose end could not be written. */
export const fullAgainMs = 30_000

/** A step of a bundle has failed: it stays in its state, and the step is due again later. `progress`: what it reached. */
export function retryLater(
  { bundles, clock, logger }: Pick<BundlerParts, 'bundles' | 'clock' | 'logger'>,
  id: Id,
  { message }: Refusal,
  progress: Partial<BundleRecord> = {},
): void {
  const bundle = { ...bundles.known(id), ...progress }
  const attempts = bundle.attempts + 1
  const waitMs = Math.min(againMs * 2 ** bundle.attempts, againMaxMs)
  // Nodes have it, so it is paid for: whether it is in a block is looked at, and what they do not show then is sent again.
  const isSeeded = attempts > stepsMax && bundle.state === 'posted'
  if (!isSeeded && attempts % 5 === 0)
    logger.warn({ bundle: id, state: bundle.state, reason: message }, 'a bundle does not get on')
  const dueMs = clock.now() + waitMs
  const next: BundleRecord = isSeeded
    ? { ...bundle, state: 'seeded', attempts: 0, dueMs: clock.now(), reason: message }
    : { ...bundle, attempts, dueMs, reason: message }
  const kept = tryWrite(() => bundles.put(next))
  // How often it was tried is not known then, and the next try may send all bytes once more.
  if (isRefusal(kept)) bundles.delay(id, Math.max(dueMs, clock.now() + fullAgainMs))
}
