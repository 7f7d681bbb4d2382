import { systemClock } from '../../actor/clock.js'
import { FairSlots } from '../../actor/fair-slots.js'
import type { Log } from '../../actor/log.js'
import type { Address } from '../../actor/mailbox-address.js'
import type { Meters } from '../../actor/meter.js'
import { Tip } from '../../actor/shared.js'
import type { CatalogReply, CatalogRequest } from '../../catalog/catalog-messages.js'
import { isFullyProven } from '../../catalog/merge.js'
import type { LmdbCatalog } from '../../catalog/reader.js'
import type { ChunkHolders } from '../../chain/chunk-holders.js'
import { RemoteChain } from '../../chain/remote-chain.js'
import { Evidence } from '../../ingest/evidence.js'
import { ProofAgenda } from '../../ingest/proof-agenda.js'
import { ProofBudget, processorMsOfProgram } from '../../ingest/proof-budget.js'
import { priorities } from '../../ingest/proof-records.js'
import { type ProofMarks, Verifier } from '../../ingest/verifier.js'
import type { VerifierMeters, VerifierParts } from '../../ingest/verifier-parts.js'
import type { Kept, KeptNotes } from '../../source/keeping/blob-cache.js'
import type { BlobProver } from '../../source/proving/prover.js'
import { Chunks } from '../../source/roots/chunks.js'
import { Directories } from '../../source/roots/directories.js'
import { ProvenChunks } from '../../source/roots/proven-chunks.js'
import { RootHeights } from '../../source/roots/root-heights.js'
import { Transactions } from '../../source/roots/transaction-headers.js'
import { sourceDefaults } from '../../source/source-defaults.js'
import type { BlobStore } from '../../store/blobs.js'
import { openEnvironment } from '../../store/lmdb.js'
import { chainOptions } from '../chain-options.js'
import { folders } from '../folders.js'
import type { SourceGiven } from './source-given.js'
import { proofBudgetOptions, verifierOptions } from './source-options.js'

/** What a proof needs of the thread that keeps content. */
export interface VerificationParts extends Pick<VerifierParts, 'replace' | 'onProven'> {
  readonly catalog: LmdbCatalog
  readonly keeper: Address<CatalogRequest, CatalogReply>
  readonly store: BlobStore
  readonly pool: BlobProver
  readonly meters: Meters
  readonly log: Log
  /** What is known of the chunks of nodes, and learned. */
  readonly holders: ChunkHolders
}

/** What proves cached content in the background. */
export interface Verification {
  /** What the keeper of payloads reports to. */
  readonly notes: KeptNotes
  recorded(kept: Kept): void
  start(): void
  close(): Promise<void>
}

/** Proves what was cached, where the operator wants it. */
export function openVerification(given: SourceGiven, parts: VerificationParts): Verification | undefined {
  const { settings, memory } = given
  const options = verifierOptions(settings)
  if (options === undefined) return undefined
  const { store, pool, meters, holders, ...others } = parts
  const budget = budgetOf(given, meters)
  const { chain, heights, evidence } = openEvidence(given, budget, store, pool, holders)
  const environment = openEnvironment(folders(settings).proofs)
  const verifier = new Verifier(
    {
      ...others,
      heights,
      evidence,
      agenda: new ProofAgenda(environment, options.waitingMax),
      budget,
      tip: new Tip(memory.tip),
      meters: verifierMeters(meters),
      clock: systemClock,
      random: Math.random,
    },
    options,
  )
  return {
    notes: {
      note(kept) {
        const noted = notedOf(kept)
        if (noted !== undefined) verifier.note(...noted)
      },
      commit: () => verifier.commit(),
    },
    recorded(kept) {
      const noted = notedOf(kept)
      if (noted !== undefined) verifier.recorded(...noted)
    },
    start: () => verifier.start(),
    async close() {
      await verifier.stop()
      await chain.close()
      await environment.close()
    },
  }
}

/** What the verifier notes of a content: where to look for its proof. Undefined: nothing of it is left to be proven. */
function notedOf({ attributes, hints, clientHints, named }: Kept): Parameters<Verifier['note']> | undefined {
  if (isFullyProven(attributes)) return undefined
  const { id, place } = attributes
  const isClients = place === undefined && hints.rootId === undefined && clientHints.rootId !== undefined
  const given = isClients ? clientHints : hints
  const hinted = place === undefined ? given : { rootId: place.rootId }
  const isIndexed = place === undefined && attributes.height !== undefined
  const marks: ProofMarks = { ...(isClients ? { isClients } : {}), ...(isIndexed ? { isIndexed } : {}) }
  return [id, hinted, named ? priorities.named : priorities.requested, marks]
}

function budgetOf({ settings }: SourceGiven, meters: Meters): ProofBudget {
  const spent = meters.of('proof_processor_seconds_total')
  const requests = meters.of('proof_node_requests_total')
  return new ProofBudget(
    proofBudgetOptions(settings),
    systemClock,
    processorMsOfProgram,
    (ms) => spent.add(ms / 1000),
    () => requests.add(1),
  )
}

/** Readers have their own calls to nodes, and their own chunks in memory: proofs take no place of theirs. */
function openEvidence(
  { nodes, settings }: SourceGiven,
  budget: ProofBudget,
  store: BlobStore,
  prover: BlobProver,
  holders: ChunkHolders,
): { chain: RemoteChain; heights: RootHeights; evidence: Evidence } {
  const { callsMax, connectionsMax, chunksMaxBytes, aheadMax, headersMax } = sourceDefaults.provingChain
  const options = { ...chainOptions(nodes, settings), callsMax, connectionsMax }
  const chain = new RemoteChain(options, systemClock, () => budget.request(), holders)
  const transactions = new Transactions(chain)
  const heights = new RootHeights(chain, systemClock)
  const turns = FairSlots.unbounded(callsMax)
  const proven = new ProvenChunks({ chain, turns, memoryMaxBytes: chunksMaxBytes })
  const chunks = new Chunks(transactions, { chunks: proven, aheadMax }, heights)
  const evidence = new Evidence({
    store,
    prover,
    transactions,
    openRoot: chunks.openRoot,
    chunks,
    directories: new Directories(),
    limits: { ...sourceDefaults.location, headersMax },
  })
  return { chain, heights, evidence }
}

function verifierMeters(meters: Meters): VerifierMeters {
  const [waitingNow, oldest, late] = [
    meters.of('proofs_waiting'),
    meters.of('proofs_oldest_seconds'),
    meters.of('proofs_late_seconds'),
  ]
  const judged = {
    proven: meters.of('proofs_total', { outcome: 'proven' }),
    wrong: meters.of('proofs_total', { outcome: 'wrong' }),
    undecided: meters.of('proofs_total', { outcome: 'undecided' }),
  }
  return {
    waiting(count, oldestSeconds, lateSeconds) {
      waitingNow.set(count)
      oldest.set(oldestSeconds)
      late.set(lateSeconds)
    },
    judged: (outcome, count) => judged[outcome].add(count),
  }
}
