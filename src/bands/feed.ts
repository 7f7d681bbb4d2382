import { magnetWith, trackerOf } from '../torrent/named-tracker.js'
import type { PublicationDocument, PublishedIndex } from './publication.js'

/** Minutes after which a reader may look again. */
const ttlMinutes = 30

/** Where a client finds what a feed names. */
export interface FeedPlaces {
  readonly pathPrefix: string
  /** This gateway's address as everybody reaches it. Absent: links are paths, and neither tracker nor .torrent file is named. */
  readonly origin?: string
}

/** An RSS 2.0 feed of the bands of one index, for torrent clients: the same for all as long as the document does not change. */
export function feedOf(
  document: PublicationDocument,
  index: PublishedIndex,
  { pathPrefix, origin }: FeedPlaces,
): string {
  const start = origin ?? ''
  const trackers = origin === undefined ? [] : [trackerOf(origin + pathPrefix)]
  const date = new Date(document.issuedAt).toUTCString()
  const items = index.bands.map(({ id, torrent, http, files }) => {
    const bytes = files.reduce((sum, { size }) => sum + size, 0)
    const magnet = torrent && magnetWith(torrent.magnet, trackers)
    const link = magnet ?? start + (http?.baseUrl ?? `${pathPrefix}/indexes`)
    const enclosure =
      torrent === undefined || origin === undefined
        ? ''
        : `<enclosure url="${escaped(origin + torrent.torrentUrl)}" length="${bytes}" type="application/x-bittorrent"/>`
    return (
      `<item><title>${escaped(id)}</title><link>${escaped(link)}</link>` +
      `<guid isPermaLink="false">${escaped(`${index.name}/${id}`)}</guid><pubDate>${date}</pubDate>${enclosure}</item>`
    )
  })
  return (
    '<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0"><channel>' +
    `<title>${escaped(index.name)}</title><link>${escaped(`${start}${pathPrefix}/indexes`)}</link>` +
    `<description>Bands of ${escaped(index.name)}, published by ${escaped(document.publisher)}</description>` +
    `<lastBuildDate>${date}</lastBuildDate><ttl>${ttlMinutes}</ttl>${items.join('')}</channel></rss>\n`
  )
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
