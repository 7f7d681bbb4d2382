import { randomBytes } from 'node:crypto'
import { createReadStream, existsSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { pause } from '../../src/actor/clock.js'

const libraryPath = fileURLToPath(new URL('../clients/turbo.js', import.meta.url))

/** The command line of the same library. */
export const turboCommandPath = fileURLToPath(new URL('../clients/turbo-cli/cli.js', import.meta.url))

/** Why a test that needs the library cannot run here, or false. */
export const withoutTurbo = existsSync(libraryPath) ? false : 'install test/clients and build to run it'

/**
 * The library of the network for uploads and payments, unmodified, in few files (bin/bundle-test-libraries.mjs). It is too large
 * to be a dependency for its types: `Library` says what of it a test uses.
 */
export async function turboLibrary<Library>(): Promise<Library> {
  return (await import(libraryPath)) as Library
}

interface Tokens {
  readonly ArweaveToken: new (given: object) => object
}

/**
 * Transfers on Arweave, given to `TurboFactory` as `tokenTools`. Without them the library waits 15 seconds before it looks for a
 * transfer, as a public chain needs; a chain of this machine has it at once.
 */
export async function quickTransfers(gatewayUrl: string): Promise<object> {
  const { ArweaveToken } = await turboLibrary<Tokens>()
  const pollingOptions = { maxAttempts: 1000, pollingIntervalMs: 100, initialBackoffMs: 100 }
  return new ArweaveToken({ gatewayUrl, pollingOptions })
}

/** Mines one block for what waits to be mined, until the function that it gives is called: so few blocks come on top of it. */
export function miningTransfers(devnet: string): () => Promise<void> {
  let isOver = false
  const work = (async () => {
    while (!isOver) {
      const pending = (await (await fetch(`${devnet}/tx/pending`)).json()) as string[]
      if (pending.length > 0) await fetch(`${devnet}/mine/1`)
      await pause(50)
    }
  })()
  return async () => {
    isOver = true
    await work
  }
}

/** A file of chance below a folder, and what `uploadFile` of the library takes for it. */
export function largeFile(folder: string, sizeBytes: number) {
  const bytes = randomBytes(sizeBytes)
  const path = `${folder}/large.bin`
  writeFileSync(path, bytes)
  const factories = { fileStreamFactory: () => createReadStream(path), fileSizeFactory: () => bytes.length }
  return { bytes, factories }
}
