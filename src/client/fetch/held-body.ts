import { Gathered } from '../../format/gathered.js'

/** An answer whose body is wanted as a whole. */
export interface WholeAnswer {
  readonly url: string
  readonly status: number
  readonly headers: Headers
  /** Its body comes so fast that it is hashed by the thread that reads it. */
  readonly isDirect: boolean
  /**
   * Reads the body. `each` gets the pieces as they come, and a promise of it is awaited. Where the length is stated, each piece
   * is written to its final place, so that nothing is copied after the last one.
   */
  held(each: (piece: Uint8Array) => Promise<void> | undefined): Promise<Uint8Array<ArrayBuffer>>
  /** Where the body is not wanted. */
  drop(): Promise<void> | void
}

/** The length of an answer's body; undefined where none is stated, or where the body is compressed on its way. */
export function plainLength(response: Pick<Response, 'headers'>): number | undefined {
  const lengthText = response.headers.get('content-length')
  if (lengthText === null || response.headers.has('content-encoding')) return undefined
  const length = Number(lengthText)
  return Number.isSafeInteger(length) ? length : undefined
}

/** An answer of `fetch` as one; `pieces` reads at most so many bytes of its body. */
export function fetchedWhole(
  response: Response,
  bytesMax: number,
  pieces: (limit: number) => AsyncIterable<Uint8Array>,
): WholeAnswer {
  const { url, status, headers } = response
  return {
    url,
    status,
    headers,
    isDirect: false,
    drop: () => response.body?.cancel(),
    held: async (each) => {
      const length = plainLength(response)
      const bytes = length === undefined || length > bytesMax ? undefined : new Uint8Array(length)
      const kept = new Gathered()
      let size = 0
      for await (const piece of pieces(bytes?.length ?? bytesMax)) {
        if (bytes === undefined) kept.add(piece)
        else bytes.set(piece, size)
        size += piece.length
        const busy = each(piece)
        if (busy !== undefined) await busy
      }
      return bytes?.subarray(0, size) ?? kept.bytes()
    },
  }
}

/** What a reader of the stream gets at once. */
const pieceBytes = 1024 * 1024

function streamOf(bytes: Uint8Array<ArrayBuffer>): ReadableStream<Uint8Array> {
  let at = 0
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (at < bytes.length) controller.enqueue(bytes.subarray(at, at + pieceBytes))
        at += pieceBytes
        if (at >= bytes.length) controller.close()
      },
    },
    { highWaterMark: 0 },
  )
}

/** A response whose bytes are in memory already: `arrayBuffer()` gives them without a copy, which `Response` would make. */
export class HeldResponse extends Response {
  #held: Uint8Array<ArrayBuffer> | undefined

  constructor(bytes: Uint8Array<ArrayBuffer>, init: ResponseInit) {
    super(streamOf(bytes), init)
    // Memory that has more than these bytes is not given away.
    this.#held = bytes.byteLength === bytes.buffer.byteLength ? bytes : undefined
  }

  // Properties, because the types of `Response` in Node declare them as such.
  override readonly arrayBuffer = async (): Promise<ArrayBuffer> => {
    const held = this.#held
    if (held === undefined || this.bodyUsed || this.body?.locked !== false)
      return Response.prototype.arrayBuffer.call(this)
    this.#held = undefined
    // A body is read once only: from here on it counts as used.
    await this.body.cancel()
    return held.buffer
  }

  override readonly clone = (): Response => {
    // Two readers must not get the same memory.
    this.#held = undefined
    return Response.prototype.clone.call(this)
  }
}
