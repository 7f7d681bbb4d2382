import { creditsText, dollarsText, wincOf } from '../client/amounts.js'
import type { SluiceClient } from '../client/client.js'
import { ClientError } from '../client/errors.js'
import { creditsPageOf, dollarsOf, quoteUploads, type UploadQuote } from '../client/quote.js'
import { program } from './program-name.js'

/** What something costs, in credits and dollars, or that it is free. */
export function costText({ winc, usd }: Pick<UploadQuote, 'winc' | 'usd'>): string {
  if (winc === 0n) return 'free'
  return usd === undefined ? creditsText(winc) : `${creditsText(winc)} (${dollarsText(usd)})`
}

/** The same of a price that is not exceeded. */
export function priceText(quote: UploadQuote): string {
  return quote.winc === 0n ? 'free' : `at most ${costText(quote)}`
}

/** What was charged. */
export async function chargedText(client: SluiceClient, winc: string): Promise<string> {
  const charged = wincOf(winc)
  if (charged === 0n) return 'free'
  return `charged ${costText({ winc: charged, usd: await dollarsOf(client, charged) })}`
}

/** How people buy credits for a wallet: on a page of the service, where it has one, or by a command that prints such a page. */
async function waysToBuy(client: SluiceClient, address: string): Promise<string> {
  const page = await creditsPageOf(client, address)
  const command = `${program} top-up 1000 usd --for ${address}`
  return page === undefined ? `buy them by ${command}` : `buy them at ${page}, or by ${command}`
}

/**
 * What items of these sizes cost at most. Throws `insufficient-credits`, with what is missing and where it can be bought, where
 * the wallet cannot pay that: nothing was uploaded then.
 */
export async function affordable(
  client: SluiceClient,
  itemBytes: readonly number[],
  itemsInside = 0,
): Promise<UploadQuote> {
  const quote = await quoteUploads(client, itemBytes, itemsInside)
  if (quote.winc === 0n) return quote
  const held = wincOf((await client.getBalance()).winc)
  if (held >= quote.winc) return quote
  const { winc } = quote
  const usd = await dollarsOf(client, winc - held)
  const missing = costText({ winc: winc - held, usd })
  const found = `${missing} are missing: it costs ${costText(quote)}, the wallet has ${creditsText(held)}`
  const ways = await waysToBuy(client, client.currentSigner?.address ?? '')
  throw new ClientError('insufficient-credits', found, ways)
}
