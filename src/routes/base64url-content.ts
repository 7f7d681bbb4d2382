import type { Content } from '../store/content.js'

/** Bytes encoded at once: a multiple of three. One buffer a thread: what `read` gives is valid until the next call. */
const sliceBytes = 49_152
const raw = Buffer.allocUnsafeSlow(sliceBytes)
const text = Buffer.allocUnsafeSlow((sliceBytes / 3) * 4)

/** Characters of base64url without padding for so many bytes. */
export function base64urlChars(bytes: number): number {
  return Math.ceil((bytes * 4) / 3)
}

/** Content as base64url text, encoded while it is read. */
export class Base64urlContent implements Content {
  readonly sizeBytes: number

  constructor(private readonly content: Content) {
    this.sizeBytes = base64urlChars(content.sizeBytes)
  }

  read(start: number, end: number): Uint8Array | undefined {
    const { content } = this
    const from = firstByte(start)
    const wanted = Math.min(sliceBytes, content.sizeBytes - from)
    let got = 0
    // A view may end in the middle of three bytes that are encoded together.
    while (got < wanted) {
      const view = content.read(from + got, from + wanted)
      if (view === undefined) break
      raw.set(view, got)
      got += view.length
    }
    const isLast = from + got === content.sizeBytes
    const usable = isLast ? got : got - (got % 3)
    if (usable === 0) return undefined
    const chars = text.write(raw.toString('base64url', 0, usable), 'latin1')
    const skipped = start % 4
    return text.subarray(skipped, Math.min(chars, skipped + end - start))
  }

  async ready(start: number): Promise<boolean> {
    const { content } = this
    const { sizeBytes } = content
    const from = firstByte(start)
    const last = Math.min(from + 2, sizeBytes - 1)
    return (await content.ready(from, sizeBytes)) && content.ready(last, sizeBytes)
  }

  close(): void {
    this.content.close()
  }
}

/** The byte with which the four characters around this one begin. */
function firstByte(char: number): number {
  return Math.floor(char / 4) * 3
}
