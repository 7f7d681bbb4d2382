/** Decodes base64url (RFC 4648 section 5, no padding) that arrives in pieces cut anywhere. */
export class Base64urlFlow {
  #rest = ''

  /** The bytes that are complete after `piece`; undefined where the text is no base64url. */
  push(piece: Buffer): Buffer | undefined {
    const text = this.#rest + piece.toString('latin1')
    if (!/^[A-Za-z0-9_-]*$/.test(text)) return undefined
    const whole = text.length - (text.length % 4)
    this.#rest = text.slice(whole)
    return Buffer.from(text.slice(0, whole), 'base64url')
  }

  /** The last bytes; undefined where the text ends in the middle of a byte or has unused bits set. */
  end(): Buffer | undefined {
    const bytes = Buffer.from(this.#rest, 'base64url')
    return this.#rest.length !== 1 && bytes.toString('base64url') === this.#rest ? bytes : undefined
  }
}
