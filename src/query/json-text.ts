/** Builds a JSON text from its beginning to its end, with placeholders for parts that arrive later. */
export class JsonText {
  /** The text since the last placeholder; append to it. */
  text = ''
  readonly #parts: (string | Promise<string>)[] = []
  #before = 0

  /** Characters so far, without what is waited for. */
  get length(): number {
    return this.#before + this.text.length
  }

  /** Adds a placeholder for JSON that comes later. The promise must not reject. */
  wait(json: Promise<string>): void {
    this.#parts.push(this.text, json)
    this.#before += this.text.length
    this.text = ''
  }

  /** The whole text; synchronous where there is no placeholder. */
  whole(): string | Promise<string> {
    if (this.#parts.length === 0) return this.text
    return Promise.all([...this.#parts, this.text]).then((parts) => parts.join(''))
  }
}

/** JSON of a text that needs no escaping: base64url, digits. */
export function quoted(plain: string): string {
  return `"${plain}"`
}
