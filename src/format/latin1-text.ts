/** A method of buffers that works on all bytes; undeclared, for it stands behind `toString`. */
const { latin1Slice } = Buffer.prototype as unknown as {
  readonly latin1Slice: (this: Uint8Array, start: number, end: number) => string
}

/**
 * Bytes as text of as many characters, up to U+00FF: the key of a map, for example. V8 gives a small array memory of its own only
 * when something reads its `buffer`; a Buffer over it would do so, and that costs more than the text.
 */
export function latin1Text(bytes: Uint8Array): string {
  return latin1Slice.call(bytes, 0, bytes.length)
}
