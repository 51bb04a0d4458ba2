/** Arguments of the application, checked before anything is sent. Each error names the argument. */

import { ConfigurationError } from '../errors.js'

/** All names of some options. */
export type Names<T> = Readonly<Record<keyof T, true>>

/**
 * Checks that options are an object, and have no other names than these. A misspelt option would otherwise do nothing.
 *
 * @param what - the argument, which errors name; `options` for those of the call itself
 * @param needed - the names that must not be missing, for the error if there are no options at all
 */
export function known<T extends object>(what: string, options: T, names: Names<T>, needed: readonly (keyof T & string)[] = []): T {
  if (options === undefined && needed.length > 0)
    throw new ConfigurationError(`${what} are missing: { ${needed.map((name) => `${name}: …`).join(', ')} }`)
  if (!isObject(options)) throw new ConfigurationError(`${what} must be an object, not ${shown(options)}`)
  const wrong = Object.keys(options).find((name) => !Object.hasOwn(names, name))
  if (wrong === undefined) return options
  throw new ConfigurationError(`there is no option '${what === 'options' ? '' : `${what}.`}${wrong}'`)
}

/** Checks a function. */
export function checkFunction(name: string, value: unknown): void {
  if (typeof value !== 'function') throw new ConfigurationError(`${name} must be a function, not ${shown(value)}`)
}

/** Checks a boolean, which may be left out. */
export function checkFlag(name: string, value: unknown): void {
  if (value !== undefined && typeof value !== 'boolean')
    throw new ConfigurationError(`${name} must be true or false, not ${shown(value)}`)
}

/** Checks a list of at least `least`, such as of keys. A text is none, though it has a length. */
export function checkList(name: string, value: unknown, least = 0): void {
  if (!Array.isArray(value)) throw new ConfigurationError(`${name} must be a list, not ${shown(value)}`)
  if (value.length < least) throw new ConfigurationError(`${name} must not be empty`)
}

/** Checks a signal, which may be left out. That of another realm is no instance of this one's class. */
export function checkSignal(value: unknown): void {
  if (value === undefined) return
  if (!isObject(value) || typeof (value as AbortSignal).throwIfAborted !== 'function')
    throw new ConfigurationError(`signal must be an AbortSignal, not ${shown(value)}`)
}

/** A value as an error shows it. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return `'${value}'`
  if (typeof value === 'function') return 'a function'
  if (Array.isArray(value)) return 'a list'
  return isObject(value) ? 'an object' : String(value)
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
