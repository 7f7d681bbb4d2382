import type { Request } from '../http/exchange.js'
import type { Window } from '../source/source-messages.js'
import { openEnd } from '../source/window-in.js'
import { readConditions } from './plan.js'

const oneRange = /^bytes=(\d{1,15})-(\d{0,15})$/

/**
 * The range that a GET asks for, where nothing but the range decides what is sent: content of unknown size is then opened at that
 * place, instead of being read up to it. Undefined for all else, as for a range that counts from the end. Pure.
 */
export function rangeWindow(request: Request): Window | undefined {
  const { method, range, ifRange, ifMatch, ifNoneMatch } = readConditions(request)
  if (method !== 'GET' || range === undefined) return undefined
  if (ifRange !== undefined || ifMatch !== undefined || ifNoneMatch !== undefined) return undefined
  const [, first, last = ''] = oneRange.exec(range.trim()) ?? []
  if (first === undefined) return undefined
  const start = Number(first)
  const end = last === '' ? openEnd : Number(last)
  return end < start ? undefined : { start, end, mayEndEarlier: true }
}
