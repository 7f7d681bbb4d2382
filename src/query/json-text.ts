/** JSON that is written from its beginning to its end, with gaps for what must be waited for. */
export class JsonText {
  /** What was written since the last gap. Add to it. */
  text = ''
  readonly #parts: (string | Promise<string>)[] = []
  #before = 0

  /** Characters so far, without what is waited for. */
  get length(): number {
    return this.#before + this.text.length
  }

  /** Leaves a gap for JSON that comes later. It must not reject. */
  wait(json: Promise<string>): void {
    this.#parts.push(this.text, json)
    this.#before += this.text.length
    this.text = ''
  }

  /** All of it, at once where there is no gap. */
  whole(): string | Promise<string> {
    if (this.#parts.length === 0) return this.text
    return Promise.all([...this.#parts, this.text]).then((parts) => parts.join(''))
  }
}

/** JSON of a text that needs no escaping: base64url, digits. */
export function quoted(plain: string): string {
  return `"${plain}"`
}
