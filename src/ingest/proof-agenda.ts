import { type Id, idBytes, idOfBytes } from '../format/id.js'
import type { Hints } from '../source/source-messages.js'
import { type Environment, present, type Table } from '../store/lmdb.js'
import {
  type AgendaRoot,
  type AgendaWish,
  dueKey,
  encodeMember,
  encodeRoot,
  type Lane,
  laneOf,
  lanes,
  memberKey,
  priorities,
  readDueKey,
  readMember,
  readRoot,
} from './proof-records.js'

/** A content that waits for a proof. */
export interface AgendaMember extends AgendaWish {
  readonly id: Id
  /** The index has the root as a transaction. It is kept of the root alone. */
  readonly isIndexed?: true
}

/** What becomes of the members of a root after it was looked at. */
export interface RootOutcome {
  readonly rootId: Id
  /** Nothing is left to do for them, or nothing can be done. */
  readonly gone: readonly Id[]
  /** They may lie in another root. */
  readonly moved: readonly { readonly id: Id; readonly rootId: Id; readonly hints: Hints }[]
  /** When the root is looked at again, if any of its members are left. */
  readonly dueMs: number
  readonly attempts: number
}

/** No root is scheduled further ahead: one that seems to be was written before the clock was set back, so it is due now. */
const aheadMaxMs = 8 * 86_400_000

/** Below this part of all places, what was left out has a turn again. */
const roomyPart = 3 / 4

/** Contents that make room at once. */
const dropMax = 1000

/**
 * Contents that wait for a proof, grouped by the root that may hold them, on disk in the order in which the roots are due. An id
 * whose root is not known is its own root: it may be a transaction. One thread writes; what it holds is bounded by `membersMax`.
 *
 * Roots are due in lanes, so that those of one lane never wait for all of another: `named`, `led` (a hint names the root), `lone`
 * (nobody named one), and the same after the first look.
 */
export class ProofAgenda {
  /** id -> root, priority and hints. */
  readonly #members: Table
  /** root and id -> nothing. */
  readonly #ofRoot: Table
  /** root -> lane, attempts and times. */
  readonly #roots: Table
  /** lane, time and root -> nothing. */
  readonly #due: Table

  constructor(
    private readonly environment: Environment,
    private readonly membersMax: number,
  ) {
    this.#members = environment.table('members')
    this.#ofRoot = environment.table('of root')
    this.#roots = environment.table('roots')
    this.#due = environment.table('due')
  }

  /** Contents that wait. */
  get count(): number {
    return this.#members.count()
  }

  get isFull(): boolean {
    return this.count >= this.membersMax
  }

  /** There is room for contents that nobody asks for. */
  get isRoomy(): boolean {
    return this.count < this.membersMax * roomyPart
  }

  has(id: Id): boolean {
    return this.#members.view(idBytes(id)) !== undefined
  }

  /** What is on record of a root. */
  root(rootId: Id): AgendaRoot | undefined {
    const record = this.#roots.view(idBytes(rootId))
    return record === undefined ? undefined : readRoot(record)
  }

  /**
   * Adds contents, on disk when this returns. One that waits already moves where a hint names another root. Roots that wait keep
   * their time; new ones are due at `dueMs`. Where the agenda is full the root that is looked at last gives way, or the new
   * content is left out: the catalog still lists it. What comes from that list displaces nothing: it may have been denied and
   * displaced before, and the same ids would be requested from nodes again and again.
   */
  add(wishes: readonly AgendaMember[], dueMs: (wish: AgendaMember) => number, nowMs: number): void {
    if (wishes.length === 0) return
    this.environment.write(() => {
      for (const wish of wishes) this.#add(wish, dueMs(wish), nowMs)
    })
  }

  #add(wish: AgendaMember, dueMs: number, nowMs: number): void {
    const key = idBytes(wish.id)
    const record = this.#members.get(key)
    const known = record === undefined ? undefined : readMember(record)
    if (known !== undefined) {
      const isBetter = wish.rootId !== wish.id && wish.rootId !== known.rootId
      const isSooner = wish.priority > known.priority
      // Who brings the bytes may say the same as a client has.
      const isSurer = wish.rootId === known.rootId && known.isClients === true && wish.isClients !== true
      if (!isBetter && !isSooner && !isSurer) return
      const { rootId, hints, isClients } = isBetter || isSurer ? wish : known
      const priority = Math.max(wish.priority, known.priority)
      this.#leave(wish.id, known.rootId)
      this.#put(
        { id: wish.id, rootId, hints, priority, ...(isClients === true ? { isClients } : {}) },
        dueMs,
        nowMs,
      )
      return
    }
    const isLone = wish.rootId === wish.id && wish.priority < priorities.named
    if (this.isFull && (wish.priority <= priorities.listed || !this.#makeRoom(isLone))) return
    this.#put(wish, dueMs, nowMs)
  }

  #put(member: AgendaMember, dueMs: number, sinceMs: number): void {
    const { id, rootId, priority } = member
    this.#members.put(idBytes(id), encodeMember(member))
    this.#ofRoot.put(memberKey(idBytes(rootId), id), present)
    const known = this.root(rootId)
    const isLed = rootId !== id || known?.isLed === true
    const isIndexed = member.isIndexed === true || known?.isIndexed === true
    const lane = laneOf({ attempts: known?.attempts ?? 0, isLed: isLed || isIndexed, priority })
    if (known === undefined) {
      this.#set(rootId, undefined, { lane, attempts: 0, dueMs, sinceMs, isLed, isIndexed })
      return
    }
    // A node that has denied a root gets no earlier request because one more content names it.
    const isDenied = known.attempts > 0
    const after = {
      ...known,
      isLed,
      lane: isDenied ? lane : (Math.min(lane, known.lane) as Lane),
      dueMs: isDenied ? known.dueMs : Math.min(dueMs, known.dueMs),
    }
    if (after.lane !== known.lane || after.dueMs !== known.dueMs || isLed !== known.isLed)
      this.#set(rootId, known, after)
  }

  /**
   * Takes out a root with those that wait for it, for a content whose root is named or not (`isLone`). False: there is none.
   * First goes a guess that was looked at. Guesses are looked at slowly, so many may wait that were not. One of these gives way
   * to a content with a named root, and a new guess is left out while they wait. It displaces a named root only where none does.
   */
  #makeRoom(isLone: boolean): boolean {
    const isLoneWaiting = this.#last(lanes.lone) !== undefined
    const others = isLone ? (isLoneWaiting ? [] : [lanes.ledAgain]) : [lanes.lone, lanes.ledAgain]
    for (const lane of [lanes.loneAgain, ...others]) {
      const last = this.#last(lane)
      if (last === undefined) continue
      for (const { id } of this.members(last.rootId, dropMax)) this.#leave(id, last.rootId)
      return true
    }
    return false
  }

  #last(lane: Lane): { readonly dueMs: number; readonly rootId: Id } | undefined {
    const last = this.#due.floor(Buffer.concat([Buffer.from([lane]), Buffer.alloc(40, 0xff)]))
    return last === undefined || last.key[0] !== lane ? undefined : readDueKey(last.key)
  }

  /** The first roots of a lane that are due, at most `limit`, without those in `taken`. */
  due(lane: Lane, nowMs: number, taken: ReadonlySet<Id>, limit: number): Id[] {
    const found: Id[] = []
    const first = this.#first(lane)
    if (first === undefined) return found
    if (first.dueMs <= nowMs) {
      const span = { start: Buffer.from([lane]), end: Buffer.from([lane + 1]), limit: taken.size + limit }
      for (const key of this.#due.keys(span)) {
        const { dueMs, rootId } = readDueKey(key)
        if (dueMs > nowMs || found.length >= limit) break
        if (!taken.has(rootId)) found.push(rootId)
      }
    }
    if (found.length > 0) return found
    const last = this.#last(lane)
    return last !== undefined && last.dueMs > nowMs + aheadMaxMs && !taken.has(last.rootId)
      ? [last.rootId]
      : found
  }

  #first(lane: Lane): { readonly dueMs: number; readonly rootId: Id } | undefined {
    const first = this.#due.ceiling(Buffer.from([lane]))
    return first === undefined || first.key[0] !== lane ? undefined : readDueKey(first.key)
  }

  /** When the first root of these lanes is due; undefined where none waits. */
  nextMs(among: readonly Lane[] = Object.values(lanes)): number | undefined {
    let next: number | undefined
    for (const lane of among) {
      const first = this.#first(lane)
      if (first !== undefined && (next === undefined || first.dueMs < next)) next = first.dueMs
    }
    return next
  }

  /** Those who wait for a root, at most `limit`. */
  members(rootId: Id, limit: number): AgendaMember[] {
    const start = idBytes(rootId)
    const found: AgendaMember[] = []
    for (const key of [...this.#ofRoot.keys({ start, limit })]) {
      if (Buffer.compare(key.subarray(0, 32), start) !== 0) break
      const id = key.subarray(32)
      const record = this.#members.get(id)
      if (record !== undefined) found.push({ id: idOfBytes(id), ...readMember(record) })
    }
    return found
  }

  /** Writes down what came of looks at roots. */
  recordLooks(outcomes: readonly RootOutcome[], nowMs: number): void {
    if (outcomes.length === 0) return
    this.environment.write(() => {
      for (const outcome of outcomes) this.#settle(outcome, nowMs)
    })
  }

  #settle({ rootId, gone, moved, dueMs, attempts }: RootOutcome, nowMs: number): void {
    for (const id of gone) this.#leave(id, rootId)
    for (const { id, rootId: other, hints } of moved) {
      const record = this.#members.get(idBytes(id))
      if (record === undefined) continue
      const { priority } = readMember(record)
      this.#leave(id, rootId)
      this.#put({ id, rootId: other, hints, priority }, nowMs, nowMs)
    }
    const known = this.root(rootId)
    if (known === undefined) return
    const lane = laneOf({ attempts, isLed: known.isLed || known.isIndexed, priority: 0 })
    this.#set(rootId, known, { ...known, lane, attempts, dueMs })
  }

  /** A content waits for this root no more; the root goes with the last one. */
  #leave(id: Id, rootId: Id): void {
    const root = idBytes(rootId)
    this.#members.remove(idBytes(id))
    this.#ofRoot.remove(memberKey(root, id))
    const next = this.#ofRoot.ceiling(root)
    if (next !== undefined && Buffer.compare(next.key.subarray(0, 32), root) === 0) return
    this.#set(rootId, this.root(rootId), undefined)
  }

  /**
   * Roots whose ids begin with the bytes of `start`, or come later, and before `end`, in their order, at most `limit`: for those
   * who hear of the chain.
   */
  waiting(
    start: Uint8Array,
    end: Uint8Array | undefined,
    limit: number,
  ): { readonly rootId: Id; readonly root: AgendaRoot }[] {
    const found: { readonly rootId: Id; readonly root: AgendaRoot }[] = []
    const span = { start, limit, ...(end === undefined ? {} : { end }) }
    for (const { key, value } of this.#roots.span(span))
      found.push({ rootId: idOfBytes(key), root: readRoot(value) })
    return found
  }

  /** The chain has these roots: they are due now. Once for each, so that a node that denies one gets no request each block. */
  indexed(rootIds: readonly Id[], nowMs: number): void {
    if (rootIds.length === 0) return
    this.environment.write(() => {
      for (const rootId of rootIds) {
        const known = this.root(rootId)
        if (known === undefined || known.isIndexed) continue
        const { attempts } = known
        const lane = known.lane === lanes.named ? known.lane : laneOf({ attempts, isLed: true, priority: 0 })
        const dueMs = Math.min(known.dueMs, nowMs)
        this.#set(rootId, known, { ...known, lane, dueMs, isIndexed: true })
      }
    })
  }

  #set(rootId: Id, before: AgendaRoot | undefined, after: AgendaRoot | undefined): void {
    const key = idBytes(rootId)
    if (before !== undefined) this.#due.remove(dueKey(before.lane, before.dueMs, key))
    if (after === undefined) {
      this.#roots.remove(key)
      return
    }
    this.#roots.put(key, encodeRoot(after))
    this.#due.put(dueKey(after.lane, after.dueMs, key), present)
  }
}
