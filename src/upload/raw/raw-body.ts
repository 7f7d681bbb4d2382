import { randomUUID } from 'node:crypto'
import { rmSync, writeFileSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { Gathered } from '../../format/gathered.js'
import { type Refusal, refuse } from '../../format/refusal.js'
import type { BodyControl, BodySink, Request } from '../../http/exchange.js'
import { codeOf } from '../../store/blobs.js'
import { diskRefusal } from '../../store/disk-error.js'
import { makeFolder } from '../../store/folder.js'
import type { UploadAnswer } from '../requests/upload-answers.js'

/** More lies in a file; less, too, where memory is short. */
const memoryMaxBytes = 262_144

export interface RawPlace {
  readonly folder: string
  readonly maxBytes: number
  /** It has so many bytes in memory now, which `RawBody.move` can move. False: there is no room for them. */
  readonly remember: (bytes: number) => boolean
  /** So many wait for its file. An answer: there is no room for them. */
  readonly wait: (bytes: number) => UploadAnswer | undefined
  /** Bytes came that go to the disk. An answer: there is no room for them. */
  readonly hold: (bytes: number) => UploadAnswer | undefined
  /** Called repeatedly as the body grows; absent: its length is known. An answer: no more of it is wanted. */
  readonly closedAt?: ((bytes: number) => Promise<UploadAnswer | undefined>) | undefined
}

/** Bytes of a request that are to be signed here: an item needs its signature in front, which is known in the end. */
export class RawBody implements BodySink {
  readonly #path: string
  #control: BodyControl | undefined
  /** What is not in the file. */
  #gathered = new Gathered()
  /** Bytes that are in the file, or were counted for it. */
  #heldBytes = 0
  #isWriting = false
  /** False: all of it is in memory. */
  #isInFile = false
  #sizeBytes = 0
  #file: Promise<FileHandle> | undefined
  #writing: Promise<void> = Promise.resolve()
  #failure: Refusal | UploadAnswer | undefined
  /** At this size the next check is made whether more is wanted. */
  #askAtBytes = 2 * memoryMaxBytes
  #held = 0
  #resolve: (outcome: RawBody | Refusal | UploadAnswer) => void = () => undefined

  /**
   * `folder`: for what is large, emptied at each start. Of more than `maxBytes` nothing is kept. `onPiece` sees all bytes in
   * order, each valid until it returns.
   */
  constructor(
    private readonly place: RawPlace,
    private readonly onPiece: (bytes: Uint8Array) => void,
  ) {
    this.#path = join(place.folder, randomUUID())
  }

  /**
   * Resolves with itself when all is here, and with why not where it is not. Nothing is read on before `gate` has resolved;
   * where that says no, `drop` is called. To be called before the handler first waits.
   */
  take(request: Request, gate: Promise<boolean>): Promise<RawBody | Refusal | UploadAnswer> {
    const arrived = new Promise<RawBody | Refusal | UploadAnswer>((resolve) => {
      this.#resolve = resolve
    })
    this.#control = request.stream(this)
    this.#hold(gate)
    return arrived
  }

  get sizeBytes(): number {
    return this.#sizeBytes
  }

  /** What the body is made of: bytes, or a file. */
  get parts(): readonly (string | Uint8Array)[] {
    return this.#isInFile ? [this.#path] : [this.#gathered.bytes()]
  }

  piece(bytes: Uint8Array): void {
    if (this.#failure !== undefined) return
    this.#sizeBytes += bytes.length
    if (this.#sizeBytes > this.place.maxBytes) {
      this.fail(refuse('too-large', 'client', 'the body is too large'))
      return
    }
    this.onPiece(bytes)
    this.#gathered.add(bytes)
    if (this.#isInFile) this.#goOn()
    else if (this.#sizeBytes > memoryMaxBytes || !this.place.remember(this.#gathered.roomBytes)) this.move()
    if (this.#failure !== undefined) return
    const { closedAt } = this.place
    if (closedAt === undefined || this.#sizeBytes <= this.#askAtBytes) return
    this.#askAtBytes = this.#sizeBytes * 2
    this.#hold(
      closedAt(this.#sizeBytes).then((answer) => {
        if (answer !== undefined) this.fail(answer)
        return answer === undefined
      }),
    )
  }

  /** All that is in memory is in a file when this returns, and counts no more. Where the disk does not take it, it is lost. */
  move(): void {
    if (this.#isInFile) return
    const failure = this.#failure ?? this.#holdOnDisk() ?? this.#writeFirst()
    this.#gathered = new Gathered()
    this.place.remember(0)
    if (failure !== undefined) this.fail(failure)
  }

  #writeFirst(): Refusal | undefined {
    this.#isInFile = true
    try {
      makeFolder(this.place.folder)
      writeFileSync(this.#path, this.#gathered.bytes(), { flag: 'wx', mode: 0o600 })
      return undefined
    } catch (error) {
      if (codeOf(error) === undefined) throw error
      return diskRefusal(error)
    }
  }

  /** A piece came behind what is in the file. */
  #goOn(): void {
    const noRoom = this.place.wait(this.#gathered.roomBytes) ?? this.#holdOnDisk()
    if (noRoom !== undefined) this.fail(noRoom)
    else if (!this.#isWriting) {
      this.#isWriting = true
      this.#hold(this.#writeAll().then(() => true))
    }
  }

  #holdOnDisk(): UploadAnswer | undefined {
    const noRoom = this.place.hold(this.#sizeBytes - this.#heldBytes)
    this.#heldBytes = this.#sizeBytes
    return noRoom
  }

  /** Nothing of it is kept, and the rest is not waited for. */
  fail(why: Refusal | UploadAnswer): void {
    this.#failure ??= why
    this.#control?.pause()
    void this.#end(undefined)
  }

  /** Reads no more until it is over. */
  #hold(until: Promise<boolean>): void {
    this.#held += 1
    this.#control?.pause()
    const over = until.then((goesOn) => {
      this.#held -= 1
      if (goesOn && this.#held === 0) this.#control?.resume()
    })
    this.#writing = Promise.all([this.#writing, over]).then(() => undefined)
  }

  /** What comes meanwhile, which the server had read before the pause, is written behind it. */
  async #writeAll(): Promise<void> {
    while (this.#gathered.sizeBytes > 0 && this.#failure === undefined) {
      const waiting = this.#gathered.bytes()
      this.#gathered = new Gathered()
      await this.#write(waiting)
    }
    this.#isWriting = false
  }

  async #write(bytes: Uint8Array): Promise<void> {
    try {
      this.#file ??= open(this.#path, 'a')
      const file = await this.#file
      // Goes on behind a short write, which a disk that is nearly full makes.
      await file.writeFile(bytes)
    } catch (error) {
      if (codeOf(error) === undefined) throw error
      this.fail(diskRefusal(error))
    }
  }

  over(refusal: Refusal | undefined): void {
    void this.#end(refusal)
  }

  async #end(refusal: Refusal | undefined): Promise<void> {
    await this.#writing
    const failure = refusal ?? this.#failure
    this.#resolve(failure ?? this)
  }

  /** Nothing of it is needed any more. */
  async drop(): Promise<void> {
    this.#failure ??= { refused: 'busy', fault: 'self', message: 'the upload was dropped' }
    this.#gathered = new Gathered()
    if (!this.#isInFile) return
    const file = await this.#file?.catch((error: unknown) => {
      if (codeOf(error) === undefined) throw error
    })
    await file?.close()
    rmSync(this.#path, { force: true })
  }
}
