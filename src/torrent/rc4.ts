/**
 * RC4 as message stream encryption uses it: the first 1,024 bytes of the key stream are dropped. It keeps networks from
 * recognizing BitTorrent by its first bytes; it gives neither secrecy nor authenticity. Written here because OpenSSL 3 has RC4
 * only in its legacy provider.
 */
export class Rc4 {
  readonly #state = new Uint8Array(256)
  #i = 0
  #j = 0

  /** `key`: 1 to 256 bytes. */
  constructor(key: Uint8Array) {
    const state = this.#state
    for (let at = 0; at < 256; at += 1) state[at] = at
    for (let at = 0, j = 0; at < 256; at += 1) {
      const one = state[at]!
      j = (j + one + key[at % key.length]!) & 255
      state[at] = state[j]!
      state[j] = one
    }
    this.apply(new Uint8Array(droppedBytes))
  }

  /** Encrypts or decrypts the next bytes of the stream, in place. */
  apply(bytes: Uint8Array): void {
    const state = this.#state
    let i = this.#i
    let j = this.#j
    for (let at = 0; at < bytes.length; at += 1) {
      i = (i + 1) & 255
      const one = state[i]!
      j = (j + one) & 255
      const other = state[j]!
      state[i] = other
      state[j] = one
      bytes[at]! ^= state[(one + other) & 255]!
    }
    this.#i = i
    this.#j = j
  }
}

const droppedBytes = 1024
