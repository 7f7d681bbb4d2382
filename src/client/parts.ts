/** Memory for parts. */
export interface PartMemory {
  /** Memory for one part; waits until there is some. */
  take(): Promise<Uint8Array<ArrayBuffer>>
  /** A part is done with. */
  giveBack(part: Uint8Array<ArrayBuffer>): void
}

/** Memory for `count` parts of `partBytes` bytes, used again and again: new memory would wait for the garbage collector. */
export function partMemory(partBytes: number, count: number): PartMemory {
  const spare: Uint8Array<ArrayBuffer>[] = []
  const waiting: ((part: Uint8Array<ArrayBuffer>) => void)[] = []
  let made = 0
  return {
    async take() {
      const part = spare.pop()
      if (part !== undefined) return part
      if (made++ < count) return new Uint8Array(partBytes)
      return new Promise((resolve) => waiting.push(resolve))
    },
    giveBack({ buffer }) {
      const part = new Uint8Array(buffer)
      const next = waiting.shift()
      if (next === undefined) spare.push(part)
      else next(part)
    },
  }
}

/** Cuts pieces of any size into parts of `partBytes`; the last may be shorter. Parts own their memory unless it is given. */
export async function* partsOf(
  pieces: AsyncIterable<Uint8Array>,
  partBytes: number,
  memory?: PartMemory,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  let part: Uint8Array<ArrayBuffer> | undefined
  let filled = 0
  for await (const piece of pieces) {
    for (let at = 0; at < piece.length; ) {
      part ??= (await memory?.take()) ?? new Uint8Array(partBytes)
      const taken = Math.min(partBytes - filled, piece.length - at)
      part.set(piece.subarray(at, at + taken), filled)
      filled += taken
      at += taken
      if (filled < partBytes) continue
      yield part
      part = undefined
      filled = 0
    }
  }
  if (part !== undefined) yield part.subarray(0, filled)
}
