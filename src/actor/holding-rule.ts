/** Whose share is used up. */
export type Fullness = 'all' | 'client' | 'network' | 'provider'

/** Those who hold few may each hold one of so many parts of what is for them, at least one thing. */
const modestPart = 32

/**
 * Who may hold one more of `max` places. One client alone has at most half of them, and so has one network (IPv4 /24, IPv6
 * /48): a site of IPv6 has 65,536 ranges, each of them a client. All networks of one provider (IPv4 /16, IPv6 /32) have at most
 * three quarters: anybody can rent many of them. The rest is for those who hold few: a newcomer finds a place while fewer
 * providers than a quarter of `modestPart` take all that they can.
 */
export class HoldingRule {
  readonly #modest: number

  /** `openMax`: above so many taken places, only clients and networks that hold few find one; half to three quarters of `max`. */
  constructor(
    private readonly max: number,
    private readonly openMax: number,
  ) {
    this.#modest = Math.max(1, Math.floor(max / modestPart))
  }

  /** Whether one at this level that holds `held` may hold no more, where `taken` places are taken in all. */
  isFull(level: Exclude<Fullness, 'all'>, held: number, taken: number): boolean {
    if (level === 'provider') return taken * 4 >= this.max * 3 && held >= this.#modest
    return held * 2 >= this.max || (taken >= this.openMax && held >= this.#modest)
  }
}
