/** Members of one rank, by a second number. */
type Group<Member> = Map<number, Set<Member>>

/**
 * Members by a rank (an integer, 0 or more), and those of one rank by a second number with few values. The highest and the lowest
 * are found without a scan.
 */
export class Ranked<Member> {
  readonly #groups = new Map<number, Group<Member>>()
  readonly #places = new Map<Member, { readonly rank: number; readonly second: number }>()
  /** No member is above, and none below. */
  #top = 0
  #bottom = 0

  /** Gives a member this rank; one that has it already keeps its place. */
  set(member: Member, rank: number, second = 0): void {
    const before = this.#places.get(member)
    if (before?.rank === rank && before.second === second) return
    this.delete(member)
    if (this.#places.size === 0) this.#top = this.#bottom = rank
    this.#places.set(member, { rank, second })
    const group: Group<Member> = this.#groups.get(rank) ?? new Map()
    this.#groups.set(rank, group)
    const same = group.get(second)
    if (same === undefined) group.set(second, new Set([member]))
    else same.add(member)
    this.#top = Math.max(this.#top, rank)
    this.#bottom = Math.min(this.#bottom, rank)
  }

  delete(member: Member): void {
    const place = this.#places.get(member)
    if (place === undefined) return
    this.#places.delete(member)
    const group = this.#groups.get(place.rank)
    const same = group?.get(place.second)
    same?.delete(member)
    if (same?.size === 0) group?.delete(place.second)
    if (group?.size === 0) this.#groups.delete(place.rank)
  }

  /** With the highest rank, of those with the lowest second number, and of those the one that has been there longest. */
  get highest(): Member | undefined {
    if (this.#places.size === 0) return undefined
    while (!this.#groups.has(this.#top)) this.#top -= 1
    return this.#first(this.#top)
  }

  /** The same with the lowest rank. */
  get lowest(): Member | undefined {
    if (this.#places.size === 0) return undefined
    while (!this.#groups.has(this.#bottom)) this.#bottom += 1
    return this.#first(this.#bottom)
  }

  #first(rank: number): Member | undefined {
    const group = this.#groups.get(rank)
    if (group === undefined) return undefined
    for (const member of group.get(Math.min(...group.keys())) ?? []) return member
    return undefined
  }
}

/** A rank by bytes: amounts of one rank differ by less than a tenth. */
export function rankOfBytes(bytes: number): number {
  return bytes < 1 ? 0 : 1 + Math.floor(8 * Math.log2(bytes))
}
