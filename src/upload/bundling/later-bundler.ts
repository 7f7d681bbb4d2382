import type { Bundler } from './bundler.js'

/** The bundler, for those who are opened before it. */
export class LaterBundler {
  /** It is open. */
  set: (bundler: Bundler) => void = () => undefined
  readonly #bundler = new Promise<Bundler>((resolve) => {
    this.set = resolve
  })

  /** Same as `Bundler.betweenRounds`, as soon as it is open. */
  readonly betweenRounds = async <T>(act: () => T): Promise<T> => (await this.#bundler).betweenRounds(act)
}
