import type { Bundler } from './bundler.js'

/** The bundler, for those who are opened before it. */
export class LaterBundler {
  /** It is open. */
  is: (bundler: Bundler) => void = () => undefined
  readonly #bundler = new Promise<Bundler>((resolve) => {
    this.is = resolve
  })

  /** As `Bundler.between`, as soon as it is open. */
  readonly between = async <T>(act: () => T): Promise<T> => (await this.#bundler).between(act)
}
