import { systemClock } from '../../actor/clock.js'
import { createLog, type Log } from '../../actor/log.js'
import { Meters } from '../../actor/meter.js'
import { meterTable } from '../../actor/meter-table.js'
import { preemptAtOnce } from '../../actor/priority.js'
import { SampleRings } from '../../actor/sample-rings.js'
import { Following, Readiness, Tip } from '../../actor/shared.js'
import { createSigner, type Signer } from '../../attest/answer-signature.js'
import { loadSigningKey, type SigningKey } from '../../attest/keys.js'
import { type Vocabulary, vocabularies } from '../../attest/vocabulary.js'
import type { EdgeGiven } from '../edge-given.js'
import { signingKey } from '../key-paths.js'

/** What all parts of an edge thread use. */
export interface EdgeTools {
  readonly log: Log
  readonly clock: typeof systemClock
  readonly meters: Meters
  readonly vocabulary: Vocabulary
  /** Both absent where answers are not signed. */
  readonly key: SigningKey | undefined
  readonly signer: Signer | undefined
  readonly tip: Tip
  readonly following: Following
  readonly readiness: Readiness
  /** Samples of recent requests, and of clients that were refused. */
  readonly resources: SampleRings
  readonly limited: SampleRings
  /** Messages under way to one thread at most: above the requests of a thread, so that these are the bound that is met. */
  readonly mailboxMax: number
}

/** The log, the meters, the signing key and the shared numbers of one edge thread. */
export function edgeTools({ settings, memory, row }: EdgeGiven): EdgeTools {
  const { server } = settings
  const log = createLog(server.logLevel, `edge-${row}`)
  preemptAtOnce(log)
  const key = server.httpsigEnabled ? loadSigningKey(signingKey(settings)) : undefined
  const rules = { bindRequest: server.httpsigBindRequest, reuseSeconds: server.httpsigReuseSeconds }
  return {
    log,
    clock: systemClock,
    meters: new Meters(meterTable, memory.meters, row),
    vocabulary: vocabularies[server.vocabulary],
    key,
    signer: key && createSigner(key, rules),
    tip: new Tip(memory.tip),
    following: new Following(memory.following),
    readiness: new Readiness(memory.readiness),
    resources: new SampleRings(memory.resources, row - 1),
    limited: new SampleRings(memory.limited, row - 1),
    mailboxMax: server.requestsMax * 2 + 64,
  }
}
