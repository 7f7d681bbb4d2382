import type { ItemFilter } from './item-filter.js'
import { readItemFilter } from './item-filter.js'
import { custom, flag, maybeUrls, readWholeUrl, secret, whole } from './setting.js'

/** Whether everything is reported or nothing: blocks have no fields that a filter could ask for. */
function readBlockFilter(text: string) {
  const read = readItemFilter(text)
  if ('wrong' in read) return read
  const { kind } = read.value
  return kind === 'always' || kind === 'never'
    ? { value: kind === 'always' }
    : { wrong: 'must be {"always":true} or {"never":true}' }
}

/** 24 to 64 bytes in base64 behind `whsec_` (Standard Webhooks). */
function readSecret(text: string) {
  const bytes = Buffer.from(text.replace(/^whsec_/, ''), 'base64')
  const isWhole = /^(whsec_)?[A-Za-z0-9+/]+={0,2}$/.test(text)
  return isWhole && bytes.length >= 24 && bytes.length <= 64
    ? { value: new Uint8Array(bytes) }
    : { wrong: 'must be whsec_ and 24 to 64 bytes in base64' }
}

/** Who gets reports of what happens. */
export const webhooks = {
  servers: secret(
    maybeUrls(
      {
        env: 'WEBHOOK_TARGET_SERVERS',
        why: 'Receivers of events: each is sent JSON {event, data} by POST, signed as Standard Webhooks has it.',
      },
      readWholeUrl,
    ),
  ),
  index: custom<ItemFilter>({
    env: 'WEBHOOK_INDEX_FILTER',
    allowed: 'a filter as JSON',
    defaultText: '{"never":true}',
    default: { kind: 'never' },
    read: readItemFilter,
    why: 'Indexed transactions and data items that are reported to receivers.',
  }),
  blocks: custom<boolean>({
    env: 'WEBHOOK_BLOCK_FILTER',
    allowed: '{"always":true} or {"never":true}',
    defaultText: '{"never":true}',
    default: false,
    read: readBlockFilter,
    why: 'Whether blocks are reported to receivers.',
  }),
  cached: flag({
    env: 'WEBHOOK_EMIT_DATA_CACHED_EVENTS',
    default: false,
    why: 'Whether content that comes into the cache is reported to receivers.',
  }),
  uploads: flag({
    env: 'WEBHOOK_EMIT_UPLOAD_EVENTS',
    default: false,
    why: 'Whether uploads are reported to receivers: each that is accepted, with its receipt, and each that is permanent.',
  }),
  secret: secret(
    custom<Uint8Array | undefined>({
      env: 'WEBHOOK_SECRET',
      allowed: 'whsec_ and 24 to 64 bytes in base64',
      defaultText: '',
      default: undefined,
      read: readSecret,
      why: 'What receivers check signatures with. Unset: made at the first start and kept in keys/webhook.secret.',
    }),
  ),
  waitingMax: whole({
    env: 'WEBHOOK_WAITING_MAX',
    default: 100_000,
    min: 100,
    max: 10_000_000,
    why: 'Events that wait for one receiver, some KiB each on disk; without room the newest are dropped, which the log states.',
  }),
}
