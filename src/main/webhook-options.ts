import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { Config } from '../../config/read.js'
import type { WebhookOptions } from '../ingest/webhooks.js'
import { keptSecret } from '../store/secret-file.js'

const prefix = 'whsec_'

/**
 * Receivers of webhooks and what they get; undefined where there are none. Makes the secret in the folder `keys` at
 * the first start.
 */
export function webhookOptions(config: Config, keys: string): WebhookOptions | undefined {
  const { servers, index, blocks, cached, uploads, secret, waitingMax } = config.webhooks
  if (servers === undefined) return undefined
  return {
    servers,
    index,
    blocks,
    cached,
    uploads,
    waitingMax,
    delivery: {
      secret: secret ?? keptBytes(join(keys, 'webhook.secret')),
      release: config.server.release,
      timeoutMs: 10_000,
      atOnce: 5,
      // 20 tries are some 30 hours: so that a receiver may be down for a night.
      retryMs: 1000,
      retryMaxMs: 3 * 3_600_000,
      attemptsMax: 20,
    },
  }
}

function keptBytes(path: string): Uint8Array {
  const text = keptSecret(path, () => `${prefix}${randomBytes(32).toString('base64')}\n`)
  return new Uint8Array(Buffer.from(text.trim().slice(prefix.length), 'base64'))
}
