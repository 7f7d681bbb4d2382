/** A piece is cut off at the first place after so many characters where one can be. */
const pieceChars = 16 * 1024

/** A place in a text to which one can go back. */
export interface JsonMark {
  readonly text: string
  readonly parts: number
  readonly before: number
}

/** Builds a JSON text from its beginning to its end, with placeholders for parts that arrive later. */
export class JsonText {
  /** The text since the last placeholder or piece; append to it. */
  text = ''
  readonly #parts: (string | Promise<string>)[] = []
  #before = 0
  #waits = false

  /** Characters so far, without what is waited for. */
  get length(): number {
    return this.#before + this.text.length
  }

  /** Adds a placeholder for JSON that comes later. The promise must not reject. */
  wait(json: Promise<string>): void {
    this.#cut()
    this.#parts.push(json)
    this.#waits = true
  }

  /**
   * Flattens a piece when enough was appended. V8 represents an appended text as a tree with a node for each part. The tree of a
   * large answer would live so long that several garbage collections copy and mark it.
   */
  pause(): void {
    if (this.text.length >= pieceChars) this.#cut()
  }

  #cut(): void {
    // Reading a character makes V8 replace the tree by one flat text.
    if (this.text.charCodeAt(0) > 0) this.#parts.push(this.text)
    this.#before += this.text.length
    this.text = ''
  }

  mark(): JsonMark {
    return { text: this.text, parts: this.#parts.length, before: this.#before }
  }

  /** Drops what came after the mark. */
  goBack({ text, parts, before }: JsonMark): void {
    this.#parts.length = parts
    this.#before = before
    this.text = text
  }

  /** The whole text; synchronous where there is no placeholder. */
  whole(): string | Promise<string> {
    const parts = [...this.#parts, this.text]
    if (!this.#waits) return parts.join('')
    return Promise.all(parts).then((all) => all.join(''))
  }
}

/** JSON of a text that needs no escaping: base64url, digits. */
export function quoted(plain: string): string {
  return `"${plain}"`
}
