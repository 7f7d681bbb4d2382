import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { systemClock } from '../../src/actor/clock.js'
import { say } from '../kit/say.js'
import type { Services } from './client-services.js'

const library = fileURLToPath(
  new URL('../../../test/clients/node_modules/@ardrive/turbo-sdk/lib/esm/node/index.js', import.meta.url),
)

interface Turbo {
  readonly TurboFactory: {
    authenticated(given: object): { uploadFolder(given: object): Promise<{ fileResponses: unknown[] }> }
  }
}

/** Seconds for a folder by the library that the network uses; undefined where it is not installed. */
export async function turboFolder(
  { upload, payment, gateway }: Services,
  folderPath: string,
  maxConcurrentUploads: number,
): Promise<number | undefined> {
  if (!existsSync(library)) {
    say('turbo-sdk is not here: npm ci --prefix test/clients --ignore-scripts')
    return undefined
  }
  const { TurboFactory } = (await import(library)) as Turbo
  const turbo = TurboFactory.authenticated({
    privateKey: `0x${randomBytes(32).toString('hex')}`,
    token: 'ethereum',
    gatewayUrl: gateway,
    uploadServiceConfig: { url: upload },
    paymentServiceConfig: { url: payment },
  })
  const startMs = systemClock.monotonic()
  await turbo.uploadFolder({ folderPath, maxConcurrentUploads, manifestOptions: { disableManifest: true } })
  return (systemClock.monotonic() - startMs) / 1000
}
