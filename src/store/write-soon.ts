import { constants } from 'node:os'
import type { Database, RootDatabase } from 'lmdb'
import { endsWithin, pause, systemClock } from '../actor/clock.js'

/** What becomes of a transaction whose thread does not wait for the disk. */
export interface WrittenSoon<T> {
  /** Resolves when every thread can read what was written. Rejects where nothing was: `act` threw, or the disk refused. */
  readonly visible: Promise<T>
  /** Resolves when it would survive a power cut too, or with the error of a disk that did not take it. Never rejects. */
  readonly flushed: Promise<unknown>
}

const markKey = Buffer.from('turn')
/** Looks that cost one turn of the thread each; a commit that takes longer is looked for once a millisecond. */
const looksMax = 8
/** lmdb-js may never tell of a transaction that failed: so long it is believed that it is under way, and flushed. */
const patienceMs = { visible: 2000, flushed: 30_000 }

/**
 * Transactions that lmdb-js commits and flushes on a thread of Node's pool (`transactionAsync`), while `act` itself runs on the
 * thread that wrote it. lmdb-js tells of a transaction only when it is flushed, and readers see it before: so each one raises a
 * number in a table of its own, which is looked at until it is there. What lmdb-js tells of failures cannot be relied on, so
 * after the first one every transaction is an ordinary one, whose thread waits for the disk.
 */
export class SoonWriter {
  readonly #marks: Database<Buffer, Buffer>
  #isSound = true

  constructor(private readonly root: RootDatabase<Buffer, Buffer>) {
    this.#marks = root.openDB<Buffer, Buffer>('turns', { encoding: 'binary', keyEncoding: 'binary' })
  }

  write<T>(act: () => T): WrittenSoon<T> {
    if (!this.#isSound) return this.#waited(act)
    const doubt = (): void => {
      this.#isSound = false
    }
    const one = new Transaction(act, this.root, this.#marks, doubt)
    const visible = one.visible()
    const flushed = visible.then(
      () => one.flushed(),
      // There is nothing to be flushed, and whoever waits for `visible` hears of it.
      () => undefined,
    )
    return { visible, flushed }
  }

  /** Closes the environment. lmdb-js would wait for ever for a transaction that it has lost. */
  async close(): Promise<void> {
    const closed = this.root.close()
    await (this.#isSound ? closed : endsWithin(closed, patienceMs.visible))
  }

  #waited<T>(act: () => T): WrittenSoon<T> {
    const visible = new Promise<T>((resolve) => resolve(this.root.transactionSync(act)))
    return { visible, flushed: Promise.resolve() }
  }
}

class Transaction<T> {
  #isDoubtful = false
  /** Value of the mark that it sets; undefined: `act` did not run yet. */
  #wanted: number | undefined
  #outcome = undefined as T
  #thrown: { readonly error: unknown } | undefined
  #isOver = false
  #failure: unknown
  readonly #ran: Promise<void>
  readonly #told: Promise<void>

  constructor(
    act: () => T,
    private readonly root: RootDatabase<Buffer, Buffer>,
    private readonly marks: Database<Buffer, Buffer>,
    /** Is told when lmdb-js does not say what became of it, or that it failed. */
    private readonly onDoubt: () => void,
  ) {
    let ran = (): void => undefined
    this.#ran = new Promise((resolve) => {
      ran = resolve
    })
    // A transaction inside of the thread's one: what threw is undone, and what others wrote in the same one stays.
    const committed = root.childTransaction(() => {
      try {
        if (this.#isDoubtful) throw new Error('the transaction came too late')
        this.#outcome = act()
        const mark = Buffer.alloc(8)
        mark.writeDoubleLE(this.#turn() + 1)
        marks.putSync(markKey, mark)
        this.#wanted = this.#turn()
      } catch (error) {
        this.#thrown = { error }
        throw error
      } finally {
        ran()
      }
    })
    this.#told = committed.then(
      () => {
        this.#isOver = true
      },
      (error: unknown) => {
        this.#isOver = true
        this.#failure = error
        // The same once more, and nobody else listens to it.
        if (error instanceof Error && 'commitError' in error)
          Promise.resolve(error.commitError).catch((cause: unknown) => {
            this.#failure = cause
          })
      },
    )
  }

  async visible(): Promise<T> {
    const begunMs = systemClock.monotonic()
    await endsWithin(Promise.race([this.#ran, this.#told]), patienceMs.visible)
    for (let looks = 0; ; looks += 1) {
      if (this.#thrown !== undefined) throw this.#thrown.error
      if (looks < looksMax) await new Promise<void>((resolve) => setImmediate(resolve))
      else await pause(1)
      this.root.resetReadTxn()
      if (this.#isThere()) return this.#outcome
      if (this.#isOver || systemClock.monotonic() - begunMs > patienceMs.visible) break
    }
    this.#doubt()
    // It begins when the one of the other thread has ended, however that was.
    if (this.root.transactionSync(() => this.#isThere())) return this.#outcome
    const error = new Error('EIO: the database did not take a change', { cause: this.#failure })
    throw Object.assign(error, { code: 'EIO', errno: -constants.errno.EIO, syscall: 'pwrite' })
  }

  /** After it was visible. */
  async flushed(): Promise<unknown> {
    await endsWithin(this.#told, patienceMs.flushed)
    if (this.#isOver && this.#failure === undefined) return undefined
    this.#doubt()
    return this.#failure ?? new Error('nobody has told whether the database is flushed')
  }

  #doubt(): void {
    this.#isDoubtful = true
    this.onDoubt()
  }

  #isThere(): boolean {
    return this.#wanted !== undefined && this.#turn() >= this.#wanted
  }

  #turn(): number {
    const found = this.marks.getBinary(markKey)
    return found === undefined ? 0 : found.readDoubleLE()
  }
}
