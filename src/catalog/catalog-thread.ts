import type { CatalogKeeperOptions } from './catalog-keeper.js'

/**
 * What `workers/catalog.ts` is started with (plain, cloned). It answers `CatalogRequest` with `CatalogReply` on every port
 * that `{connect: port}` brings.
 */
export interface CatalogThread {
  readonly keeper: CatalogKeeperOptions
  /** `generationBytes` bytes, shared with every reader. */
  readonly generations: SharedArrayBuffer
  readonly logLevel: string
  /** Requests are answered beside it: it lets their threads go first. */
  readonly isBeside: boolean
}
