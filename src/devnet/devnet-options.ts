/** How an embedded node is set up. */
export interface DevnetOptions {
  /** Address to listen on. */
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  /** Folder that holds the chain; made where missing. Not used in replay mode. */
  readonly dataPath: string
  /** Milliseconds between blocks; 0: only on demand. */
  readonly blockMs: number
  /** A folder of node JSON to serve, read-only, instead of a chain of its own. */
  readonly replayPath?: string
  /**
   * Weave size of the genesis block, bytes; a multiple of 256 KiB after the strict data split (30607159107830). By default so
   * high that today's rules apply.
   */
  readonly weaveStartBytes?: number
  /** Winston per byte stored (default 460). */
  readonly winstonPerByte?: bigint
}
