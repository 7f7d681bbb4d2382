import { systemClock } from '../../actor/clock.js'
import { createLog } from '../../actor/log.js'
import { addressOf, answer } from '../../actor/mailbox-address.js'
import { ranks, stepBack } from '../../actor/priority.js'
import { endThread, type OpenThread } from '../../actor/run-thread.js'
import type { CatalogReply, CatalogRequest } from '../../catalog/catalog-messages.js'
import { refuse } from '../../format/refusal.js'
import { Ingest } from '../../ingest/ingest.js'
import type { IngestReply, IngestRequest } from '../../ingest/ingest-messages.js'
import { ingestDefaults } from '../../ingest/ingest-parts.js'
import type { ExportReply, ExportRequest } from '../../parquet/export-protocol.js'
import { Exporter } from '../../parquet/exporter.js'
import type { SourceReply, SourceRequest } from '../../source/source-messages.js'
import { folders } from '../folders.js'
import { type IngestGiven, ingestParts } from './ingest-options.js'

/** Makes the index grow: follows the chain, repairs gaps, opens bundles. */
export function openIngest(given: IngestGiven): OpenThread {
  const { settings, ports } = given
  const log = createLog(settings.server.logLevel, 'ingest')
  stepBack(ranks.background, log)
  const { keeperMailboxMax } = ingestDefaults
  const keeper = addressOf<CatalogRequest, CatalogReply>(ports.catalog, keeperMailboxMax)
  const source = addressOf<SourceRequest, SourceReply>(ports.source, keeperMailboxMax)
  const ingest = new Ingest(ingestParts(given), { keeper, source }, systemClock, log)
  const places = { root: folders(settings).exports, forkDepth: settings.indexing.forkDepthMax }
  const exporter = new Exporter(ingest.index, places, systemClock, log)
  let isStopping = false
  void ingest.run().catch((error: unknown) => {
    if (!isStopping) endThread(log, error, 'the index cannot grow: ending')
  })
  return {
    connect: (port) =>
      answer<IngestRequest | ExportRequest, IngestReply | ExportReply>(port, (message) => {
        if ('export' in message) return exporter.handle(message)
        // Rows that are still to be exported must not be removed meanwhile.
        if (message.kind === 'prune' && exporter.busy)
          return refuse('busy', 'self', 'An export is in progress')
        return ingest.handle(message)
      }),
    async close() {
      isStopping = true
      await exporter.stop()
      await ingest.stop()
    },
  }
}
