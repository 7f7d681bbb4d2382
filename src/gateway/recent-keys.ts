/** Size of the table. A later answer with the same index replaces the earlier one. */
const places = 131_072

/**
 * Whether an answer was requested recently. The table has a hash of each of the last answers that are not in the response cache.
 * An answer enters a full response cache only at its second request, so that single requests evict nothing. After a collision of
 * hashes an answer enters at its first request, which does no harm.
 */
export class RecentKeys {
  readonly #marks = new Int32Array(places)

  /** True where the answer was requested before and is still in the table. Notes it. */
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
