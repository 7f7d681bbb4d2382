import type { Test } from 'tap'
import { silentLog } from '../../src/actor/log.js'
import type { Attributes } from '../../src/catalog/attributes.js'
import type { CatalogRequest } from '../../src/catalog/catalog-messages.js'
import { Generations } from '../../src/catalog/generations.js'
import { type Id, idOfBytes } from '../../src/format/id.js'
import type { Judgement, ProofClaim, ProofVerdict } from '../../src/ingest/evidence.js'
import { ProofAgenda } from '../../src/ingest/proof-agenda.js'
import { ProofBudget } from '../../src/ingest/proof-budget.js'
import { Verifier } from '../../src/ingest/verifier.js'
import type { VerifierParts } from '../../src/ingest/verifier-parts.js'
import { sourceDefaults, type VerifierOptions } from '../../src/source/source-defaults.js'
import { openEnvironment } from '../../src/store/lmdb.js'
import { HandClock } from '../names/hand-clock.js'
import { folder } from './house.js'
import { IdList } from './id-list.js'

/** Records of the catalog, which counts their changes by shards. */
class Records extends Map<Id, Attributes> {
  readonly generations = new Generations()

  override set(id: Id, attributes: Attributes): this {
    this.generations.commit([id])
    return super.set(id, attributes)
  }
}

export function idOf(number: number): Id {
  const bytes = Buffer.alloc(32, 1)
  bytes.writeUInt32BE(Math.imul(number, 2_654_435_761) >>> 0, 0)
  bytes.writeUInt32BE(number, 8)
  return idOfBytes(bytes)
}

/** A question to a node. */
export interface RootRequest {
  readonly rootId: Id
  readonly atMs: number
  /** Contents that were judged by the answer. */
  readonly count: number
}

/** A verifier with everything around it by hand: the catalog, the nodes, the chain and the time. */
export interface ProvingRig {
  readonly clock: HandClock
  readonly verifier: Verifier
  readonly agenda: ProofAgenda
  readonly known: Records
  /** Ids that the catalog lists as unproven. */
  readonly unsettled: IdList
  readonly requested: RootRequest[]
  /** Milliseconds of processor time that proofs used, as the budget counts them. */
  spentMs(): number
  /** The program did so much else. */
  work(ms: number): void
  block(): void
  put(id: Id): void
  /** The same agenda and catalog after a kill: nothing was told to stop. */
  restarted(): Promise<ProvingRig>
}

export interface ProvingNodes {
  /** What the nodes say of a content whose root they are asked for. */
  judge(claim: ProofClaim, rootId: Id): ProofVerdict
  height?(rootId: Id): number | undefined
}

const idle: Partial<VerifierOptions> = {}
const requestMs = 0.3

export function provingRig(
  t: Test,
  nodes: ProvingNodes,
  changed = idle,
  earlier?: Pick<ProvingRig, 'clock' | 'known' | 'unsettled' | 'requested'> & { readonly path: string },
): ProvingRig {
  const path = earlier?.path ?? folder(t)
  const clock = earlier?.clock ?? new HandClock()
  const known = earlier?.known ?? new Records()
  const unsettled = earlier?.unsettled ?? new IdList()
  const requested = earlier?.requested ?? []
  const environment = openEnvironment(path)
  const options: VerifierOptions = {
    ...sourceDefaults.verifier,
    waitingMax: 10_000,
    attemptsMax: 25,
    ...changed,
  }
  const agenda = new ProofAgenda(environment, options.waitingMax)
  let [processorMs, spentMs, growths] = [0, 0, 0]
  const budget = new ProofBudget(
    { share: 0.05, leastMsPerSecond: 20, burstMs: 250, requestsPerSecond: 20, requestMs },
    clock,
    () => processorMs,
    (ms) => {
      spentMs += ms
      processorMs += ms
    },
  )
  const parts = {
    catalog: {
      attributes: (id: Id) => known.get(id),
      blobSize: () => 1,
      changedShards: (seen: Int32Array) => known.generations.changed(seen),
      unsettled: (after: Id | undefined, limit: number) => unsettled.list(after, limit),
    },
    keeper: { ask: async (message: CatalogRequest) => apply(message) },
    heights: {
      of: async (rootId: Id) => (nodes.height === undefined ? 7 : nodes.height(rootId)),
    },
    evidence: {
      async judgeAll(rootId: Id, claims: readonly ProofClaim[]): Promise<Judgement> {
        await budget.request()
        requested.push({ rootId, atMs: clock.now(), count: claims.length })
        const verdicts = new Map(claims.map((claim) => [claim.known.id, nodes.judge(claim, rootId)]))
        return { verdicts, ranMs: 0.1 * claims.length }
      },
    },
    replace: async () => undefined,
    agenda,
    budget,
    tip: {
      get growths() {
        return growths
      },
    },
    meters: { waiting: () => undefined, judged: () => undefined },
    clock,
    log: silentLog,
    random: () => 0.5,
  }
  function apply(message: CatalogRequest): { readonly kind: 'committed' } {
    if (message.kind === 'all') for (const one of message.requests) apply(one)
    else if (message.kind === 'resigned') unsettled.delete(message.id)
    else if (message.kind === 'learn')
      for (const one of message.attributes) {
        known.set(one.id, one)
        if (one.verified && one.height !== undefined) unsettled.delete(one.id)
      }
    return { kind: 'committed' }
  }
  const verifier = new Verifier(parts as unknown as VerifierParts, options)
  let isClosed = false
  const close = async (): Promise<void> => {
    if (isClosed) return
    isClosed = true
    await verifier.stop()
    await environment.close()
  }
  t.teardown(close)
  return {
    clock,
    verifier,
    agenda,
    known,
    unsettled,
    requested,
    spentMs: () => spentMs,
    work: (ms) => {
      processorMs += ms
    },
    block: () => {
      growths += 1
    },
    put(id) {
      known.set(id, { id, size: 1, digest: new Uint8Array(32), verified: false, trusted: false })
      unsettled.add(id)
    },
    async restarted() {
      await close()
      return provingRig(t, nodes, changed, { clock, known, unsettled, requested, path })
    },
  }
}
