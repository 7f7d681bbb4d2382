import { createHash, randomBytes, randomInt } from 'node:crypto'
import { dhKeyBytes, keyHalf } from './key-exchange.js'
import { Rc4 } from './rc4.js'
import { handshakeBytes, isHandshake } from './wire.js'

/**
 * Message stream encryption (MSE, also called PE) as in libtorrent, uTorrent and Azureus: how two peers agree on
 * encryption before the BitTorrent handshake. Bytes in, bytes out; no socket and no clock here.
 *
 *     A to B   Ya, pad A
 *     B to A   Yb, pad B
 *     A to B   H('req1', S), H('req2', SKEY) xor H('req3', S), E(eight zeros, what A can, pad C, length of IA), E(IA)
 *     B to A   E(eight zeros, what B chose, pad D), and from here on what was chosen
 *
 * S is the secret of a Diffie-Hellman exchange over 768 bits, H is SHA-1, SKEY the infohash, E is RC4 with keys of S
 * and SKEY. IA, the first payload of A, is always encrypted, and may be empty.
 */

/** What is done with encrypted connections. */
export type Encryption =
  /** Encrypted connections are neither accepted nor made. */
  | 'off'
  /** Incoming as the peer wants; outgoing in clear, and encrypted where the peer closes the connection on that. */
  | 'accept'
  /** Same as `accept`, but outgoing ones are tried encrypted first. */
  | 'prefer'
  /** Every connection, and every byte of it, is encrypted. */
  | 'require'

/** The result of one chunk. */
export type Step =
  | { readonly kind: 'more'; readonly reply?: Buffer }
  | { readonly kind: 'end'; readonly reason: 'garbage' | 'unknown' | 'flood' | 'clear' }
  | {
      readonly kind: 'agreed'
      readonly reply?: Buffer
      /** What came behind it, in clear. */
      readonly rest: Buffer
      /** Decrypts what comes, in place. Absent: it is in clear. */
      readonly open?: (bytes: Buffer) => void
      /** Encrypts what goes, in place. */
      readonly seal?: (bytes: Uint8Array) => void
    }

/** One side of it. Holds no more than a chunk and 1,200 bytes: a handshake that is longer ends the connection. */
export interface MseHandshake {
  push(chunk: Buffer): Step
}

const padMaxBytes = 512
const [inClear, rc4] = [1, 2]
const zeros = Buffer.alloc(8)
const more: Step = { kind: 'more' }
const garbage: Step = { kind: 'end', reason: 'garbage' }

function hash(...parts: readonly (string | Uint8Array)[]): Buffer {
  const sha1 = createHash('sha1')
  for (const part of parts) sha1.update(part)
  return sha1.digest()
}

function xor(one: Buffer, other: Buffer): Buffer {
  return Buffer.from(one.map((byte, at) => byte ^ other[at]!))
}

function pad(): Buffer {
  return randomBytes(randomInt(padMaxBytes + 1))
}

/**
 * The hash of an infohash by which the answering side finds which torrent is meant, without the infohash being sent
 * in clear.
 */
export function veiledInfohash(infohash: Uint8Array): Buffer {
  return hash('req2', infohash)
}

/** What the answering side needs to know. */
export interface MseResponderParts {
  /** The infohash (20 bytes) that is hidden in these 20; undefined where it is none of ours. */
  unveil(veiled: Buffer): Buffer | undefined
  /** Whether a secret may be computed for this peer; it takes a quarter of a millisecond, so it is limited. */
  mayAgree(): boolean
}

/** The side that was connected to: finds by the first bytes whether the peer sends in clear, and answers where it does not. */
export class MseResponder implements MseHandshake {
  #held: Buffer = Buffer.alloc(0)
  #secret: Buffer | undefined
  /** What stands behind pad A. */
  #mark: Buffer = zeros
  #ciphers: Ciphers | undefined
  /** Length of pad C: bytes still to come before the length of IA. */
  #padBytes = 0
  #chosen = 0

  constructor(
    private readonly encryption: Encryption,
    private readonly parts: MseResponderParts,
  ) {}

  push(chunk: Buffer): Step {
    this.#held = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk])
    if (this.#secret === undefined) return this.#first()
    return this.#ciphers === undefined ? this.#find(this.#secret) : this.#finish(this.#ciphers)
  }

  #first(): Step {
    const held = this.#held
    if (isHandshake(held)) {
      // Bytes that begin like a plain handshake: the first 20 decide whether it is one.
      if (held.length < handshakeBytes) return more
      return this.encryption === 'require' ? { kind: 'end', reason: 'clear' } : { kind: 'agreed', rest: held }
    }
    if (this.encryption === 'off') return garbage
    if (held.length < dhKeyBytes) return more
    if (!this.parts.mayAgree()) return { kind: 'end', reason: 'flood' }
    const { own, secret } = keyHalf()
    this.#secret = secret(held.subarray(0, dhKeyBytes))
    if (this.#secret === undefined) return garbage
    this.#mark = hash('req1', this.#secret)
    this.#held = held.subarray(dhKeyBytes)
    const next = this.#find(this.#secret)
    return next.kind === 'end' ? next : { ...next, reply: Buffer.concat([own, pad(), ...sayOf(next)]) }
  }

  /** Looks for the end of pad A, and for the torrent behind it. */
  #find(secret: Buffer): Step {
    const at = this.#held.subarray(0, padMaxBytes + 20).indexOf(this.#mark)
    if (at < 0) return this.#held.length < padMaxBytes + 20 ? more : garbage
    const held = this.#held.subarray(at + 20)
    if (held.length < 34) return more
    const skey = this.parts.unveil(xor(held.subarray(0, 20), hash('req3', secret)))
    if (skey === undefined) return { kind: 'end', reason: 'unknown' }
    const input = new Rc4(hash('keyA', secret, skey))
    const words = Buffer.from(held.subarray(20, 34))
    input.apply(words)
    const provided = words.readUInt32BE(8)
    this.#chosen = choose(provided, this.encryption)
    this.#padBytes = words.readUInt16BE(12)
    const fits = words.compare(zeros, 0, 8, 0, 8) === 0 && this.#padBytes <= padMaxBytes
    if (!fits || this.#chosen === 0) return garbage
    this.#ciphers = { input, output: new Rc4(hash('keyB', secret, skey)) }
    this.#held = held.subarray(34)
    return this.#finish(this.#ciphers)
  }

  #finish({ input, output }: Ciphers): Step {
    if (this.#held.length < this.#padBytes + 2) return more
    const head = Buffer.from(this.#held.subarray(0, this.#padBytes + 2))
    input.apply(head)
    const firstWordsBytes = head.readUInt16BE(this.#padBytes)
    const reply = agreementWords(this.#chosen)
    output.apply(reply)
    const rest = Buffer.from(this.#held.subarray(this.#padBytes + 2))
    if (this.#chosen === inClear) {
      const open = opening(input, firstWordsBytes)
      open(rest)
      return { kind: 'agreed', reply, rest, open }
    }
    input.apply(rest)
    return { kind: 'agreed', reply, rest, ...both({ input, output }) }
  }
}

function sayOf(step: Step): Buffer[] {
  return step.kind !== 'end' && step.reply !== undefined ? [step.reply] : []
}

/**
 * Plain text where both sides accept it: the handshake was encrypted, which is enough for peers that only avoid being
 * recognized by their networks.
 */
function choose(provided: number, encryption: Encryption): number {
  if ((provided & inClear) !== 0 && encryption !== 'require') return inClear
  return provided & rc4
}

/** Eight zeros, what can be spoken or is chosen, and a pad of no length. */
function agreementWords(word: number): Buffer {
  const words = Buffer.alloc(14)
  words.writeUInt32BE(word, 8)
  return words
}

/** Decrypts the first `bytes` of what comes; the rest is in clear. */
function opening(cipher: Rc4, bytes: number): (chunk: Buffer) => void {
  let left = bytes
  return (chunk) => {
    if (left === 0) return
    const some = Math.min(left, chunk.length)
    left -= some
    cipher.apply(chunk.subarray(0, some))
  }
}

interface Ciphers {
  readonly input: Rc4
  readonly output: Rc4
}

function both({ input, output }: Ciphers): { open(bytes: Buffer): void; seal(bytes: Uint8Array): void } {
  return { open: (bytes) => input.apply(bytes), seal: (bytes) => output.apply(bytes) }
}

/** The side that connects. */
export class MseInitiator implements MseHandshake {
  readonly #half = keyHalf()
  #held: Buffer = Buffer.alloc(0)
  #ciphers: Ciphers | undefined
  /** The eight zeros as the other side will have encrypted them. */
  #mark: Buffer = zeros
  #chosen: Buffer | undefined

  /** `strict`: everything is encrypted, or the connection ends. */
  constructor(
    private readonly infohash: Buffer,
    private readonly strict: boolean,
  ) {}

  /** The first bytes of this side. */
  begin(): Buffer {
    return Buffer.concat([this.#half.own, pad()])
  }

  push(chunk: Buffer): Step {
    this.#held = Buffer.concat([this.#held, chunk])
    if (this.#ciphers !== undefined) return this.#find(this.#ciphers)
    if (this.#held.length < dhKeyBytes) return more
    const secret = this.#half.secret(this.#held.subarray(0, dhKeyBytes))
    if (secret === undefined) return garbage
    const [input, output] = [
      new Rc4(hash('keyB', secret, this.infohash)),
      new Rc4(hash('keyA', secret, this.infohash)),
    ]
    this.#ciphers = { input, output }
    this.#mark = Buffer.alloc(8)
    input.apply(this.#mark)
    // IA is empty: what this side sends waits until the handshake is done.
    const words = Buffer.concat([agreementWords(this.strict ? rc4 : rc4 | inClear), Buffer.alloc(2)])
    output.apply(words)
    const veiled = xor(veiledInfohash(this.infohash), hash('req3', secret))
    const reply = Buffer.concat([hash('req1', secret), veiled, words])
    this.#held = this.#held.subarray(dhKeyBytes)
    const next = this.#find(this.#ciphers)
    return next.kind === 'end' ? next : { ...next, reply }
  }

  /** Looks for the end of pad B, and for what was chosen behind it. */
  #find(ciphers: Ciphers): Step {
    if (this.#chosen === undefined) {
      const at = this.#held.subarray(0, padMaxBytes + 8).indexOf(this.#mark)
      if (at < 0) return this.#held.length < padMaxBytes + 8 ? more : garbage
      if (this.#held.length < at + 14) return more
      this.#chosen = Buffer.from(this.#held.subarray(at + 8, at + 14))
      ciphers.input.apply(this.#chosen)
      this.#held = this.#held.subarray(at + 14)
    }
    const [chosen, padBytes] = [this.#chosen.readUInt32BE(0), this.#chosen.readUInt16BE(4)]
    if ((chosen !== rc4 && (chosen !== inClear || this.strict)) || padBytes > padMaxBytes) return garbage
    if (this.#held.length < padBytes) return more
    const rest = Buffer.from(this.#held)
    ciphers.input.apply(rest.subarray(0, padBytes))
    const words = rest.subarray(padBytes)
    if (chosen === inClear) return { kind: 'agreed', rest: words }
    ciphers.input.apply(words)
    return { kind: 'agreed', rest: words, ...both(ciphers) }
  }
}
