/** Weights of the gateways of the network, in shared memory: the fetcher writes them, edge threads read them. */
export class PeerWeights {
  readonly #cells: Int32Array

  /** `memory` of `bytesFor` as many peers as there are. */
  constructor(readonly memory: SharedArrayBuffer) {
    this.#cells = new Int32Array(memory)
  }

  static bytesFor(peers: number): number {
    return peers * 4
  }

  /** The weight of the peer in this place of the operator's list. */
  at(index: number): number {
    return Atomics.load(this.#cells, index)
  }

  set(index: number, weight: number): void {
    Atomics.store(this.#cells, index, Math.round(weight))
  }
}
