/** A piece is cut off at the first place after so many characters where one can be. */
const pieceChars = 16 * 1024

/** Characters that a part which arrives later is counted with when it is put: a signature or key of 512 bytes. */
const lateChars = 690

/** JSON that arrives later, and may stand at many places of a text. The promise must not reject. */
export class LateJson {
  /** What arrived. */
  json: string | undefined
  readonly arrived: Promise<void>

  constructor(json: Promise<string>) {
    this.arrived = json.then((arrived) => {
      this.json = arrived
    })
  }
}

/** A place in a text to which one can go back. */
export interface JsonMark {
  readonly text: string
  readonly parts: number
}

/**
 * Builds a JSON text from its beginning to its end, with placeholders for parts that arrive later. All that is written is counted
 * here and not by those who write, so that no part of an answer escapes the bound of its size; what arrives later is counted when
 * its place is written.
 */
export class JsonText {
  /** The text since the last placeholder or piece; append to it. */
  text = ''
  readonly #parts: (string | LateJson)[] = []
  /** Characters of `text` that are counted already. */
  #counted = 0

  /** `written` is called with the characters of each piece; it may throw, where an answer becomes too large. */
  constructor(private readonly written: (chars: number) => void) {}

  /** Adds a placeholder for JSON that comes later. Throws what `written` throws. */
  wait(late: LateJson): void {
    this.#cut()
    this.#parts.push(late)
    this.written(lateChars)
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

  /** Puts the whole of another text here, which is counted by then. Throws what `written` throws. */
  append(other: JsonText): void {
    other.count()
    if (other.#parts.length > 0) {
      this.#cut()
      for (const part of other.#parts) this.#parts.push(part)
    }
    this.text += other.text
    this.#counted += other.text.length
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

  /**
   * The whole text; synchronous where there is no placeholder. `until` resolves when all has arrived or nothing is waited for any
   * longer: what is not here by then is an empty text. Rejects with what `written` throws where what arrived is larger than
   * it was counted.
   */
  whole(until: (arrived: Promise<unknown>) => Promise<unknown>): string | Promise<string> {
    const parts = [...this.#parts, this.text]
    const late = new Set(parts.filter((part) => part instanceof LateJson))
    if (late.size === 0) return parts.join('')
    return until(Promise.all([...late].map(({ arrived }) => arrived))).then(() => this.#joined(parts))
  }

  #joined(parts: readonly (string | LateJson)[]): string {
    const texts = parts.map((part) => (part instanceof LateJson ? (part.json ?? quoted('')) : part))
    let more = 0
    for (const [at, part] of parts.entries())
      if (part instanceof LateJson) more += (texts[at] as string).length - lateChars
    if (more > 0) this.written(more)
    return texts.join('')
  }
}

/** JSON of a text that needs no escaping: base64url, digits. */
export function quoted(plain: string): string {
  return `"${plain}"`
}
