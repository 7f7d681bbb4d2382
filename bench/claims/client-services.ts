import { fileURLToPath } from 'node:url'
import { SluiceClient } from '../../src/client/client.js'
import type { ClientSigner } from '../../src/client/signer.js'
import { scratch } from '../../test/scratch.js'
import { start } from '../kit/child.js'
import { sluiceWords } from '../kit/folders.js'

/** Addresses of services that run for a bench. */
export interface Services {
  readonly upload: string
  readonly payment: string
  readonly gateway: string
  stop(): Promise<void>
}

const wallet = fileURLToPath(new URL('../../../test/fixture/rsa-4096.jwk.json', import.meta.url))

/** All services with an embedded chain, where everything is free. */
export async function startServices(): Promise<Services> {
  const much = String(2 ** 40)
  const child = await start(process.execPath, [...sluiceWords, 'start'], {
    env: {
      PORT: '0',
      DEVNET_PORT: '0',
      DATA_PATH: scratch('bench-services'),
      UPLOAD_WALLET_FILE: wallet,
      DEVNET_SEED: 'false',
      DEVNET_BLOCK_MS: '0',
      EDGE_THREADS: '1',
      UPLOAD_FREE_ITEM_BYTES: '10000000000',
      UPLOAD_FREE_WALLET_BYTES: much,
      UPLOAD_FREE_RANGE_BYTES: much,
      UPLOAD_MAX_ITEM_BYTES: '10000000000',
    },
    shape: /^\{.*"msg":"ready".*\}$/m,
  })
  const { urls } = JSON.parse(child.matched?.[0] ?? '{}') as { urls: Record<string, string> }
  const { upload = '', payment = '', gateway = '' } = urls
  return { upload, payment, gateway, stop: () => child.stop() }
}

/** Our client for them. */
export function clientOf({ upload, payment, gateway }: Services, signer: ClientSigner): SluiceClient {
  return new SluiceClient({ uploadUrl: upload, paymentUrl: payment, gatewayUrls: [gateway], signer })
}
