Feature: Notes

  @android
  Scenario: A note is saved
    Given the app is open
    When I write "milk"
    And I press "save"
    Then it says "Saved"

  @ios
  Scenario Outline: What I write is shown
    Given the app is open
    When I write "<title>"
    Then the title is "<title>"

    Examples:
      | title |
      | milk  |
      | bread |
