/** A piece is cut off at the first place after so many characters where one can be. */
const pieceChars = 16 * 1024

/** A place in a text to which one can go back. */
export interface JsonMark {
  readonly text: string
  readonly parts: number
}

/**
 * Builds a JSON text from its beginning to its end, with placeholders for parts that arrive later. All that is written is counted
 * here and not by those who write, so that no part of an answer escapes the bound of its size.
 */
export class JsonText {
  /** The text since the last placeholder or piece; append to it. */
  text = ''
  readonly #parts: (string | Promise<string>)[] = []
  /** Characters of `text` that are counted already. */
  #counted = 0
  #waits = false

  /** `written` is called with the characters of each piece; it may throw, where an answer becomes too large. */
  constructor(private readonly written: (chars: number) => void) {}

  /** Adds a placeholder for JSON that comes later. The promise must not reject. */
  wait(json: Promise<string>): void {
    this.#cut()
    this.#parts.push(json)
    this.#waits = true
  }

  /**
   * Flattens a piece and counts it when enough was appended. V8 represents an appended text as a tree with a node for each
   * part. The tree of a large answer would live so long that several garbage collections copy and mark it. Throws what
   * `written` throws.
   */
  pause(): void {
    if (this.text.length >= pieceChars) this.#cut()
  }

  #cut(): void {
    // Reading a character makes V8 replace the tree by one flat text.
    if (this.text.charCodeAt(0) > 0) this.#parts.push(this.text)
    this.count()
    this.#counted = 0
    this.text = ''
  }

  /** Counts what no piece has counted yet. Throws what `written` throws. */
  count(): void {
    const chars = this.text.length - this.#counted
    this.#counted = this.text.length
    this.written(chars)
  }

  mark(): JsonMark {
    return { text: this.text, parts: this.#parts.length }
  }

  /** Drops what came after the mark. It stays counted: it was written, too. */
  goBack({ text, parts }: JsonMark): void {
    const isCut = this.#parts.length > parts
    this.#parts.length = parts
    this.text = text
    this.#counted = isCut ? text.length : Math.min(this.#counted, text.length)
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
