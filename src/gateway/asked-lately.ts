/** Answers remembered, more or less: a later one with the same place in the table takes it over. */
const places = 131_072

/**
 * Says of an answer whether it was asked for lately: of the last answers that were not taken into the table of those that are
 * repeated, a number of each is kept. What is asked for once must not push out what is asked for again. Two answers with the same
 * number are taken for one: the second of them is then offered at its first request, which does no harm.
 */
export class AskedLately {
  readonly #marks = new Int32Array(places)

  /** From now on it was asked for. */
  isSecond(method: string, host: string, path: string, variant: string): boolean {
    const hash = mixed(variant, mixed(path, mixed(host, mixed(method, 0x811c9dc5))))
    const at = (hash ^ (hash >>> 15)) & (places - 1)
    // 0 stands for no answer.
    const mark = hash | 1
    if (this.#marks[at] === mark) return true
    this.#marks[at] = mark
    return false
  }
}

/** FNV-1a over the code units of a text. */
function mixed(text: string, start: number): number {
  let hash = start
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return hash
}
